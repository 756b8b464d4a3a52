#include <algorithm>
#include <cmath>
#include <cstddef>

#include "worker/backend/reference_ops.h"

namespace syncopate::worker::reference {
namespace {

std::size_t at(std::size_t row, int column, int columns) { return row * columns + column; }

float normalised(const BatchNormShape& s, float x, float scale, float shift, float mean, float inverse_deviation,
                 float residual) {
  const double y = static_cast<double>(scale) * inverse_deviation * (static_cast<double>(x) - mean) + shift + residual;
  return static_cast<float>(s.relu ? std::max(y, 0.0) : y);
}

// Calls visit(pixel of x, pixel of y), each counted over all images.
template <typename Visit>
void each_kept_pixel(const SubsampleShape& s, Visit visit) {
  for (int n = 0; n < s.batch; ++n) {
    for (int row = 0; row < s.out_height(); ++row) {
      for (int column = 0; column < s.out_width(); ++column) {
        visit((static_cast<std::size_t>(n) * s.height + row * s.stride) * s.width + column * s.stride,
              (static_cast<std::size_t>(n) * s.out_height() + row) * s.out_width() + column);
      }
    }
  }
}

}  // namespace

void batch_norm_forward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch,
                        const RunningMoments& running, In residual, Out y) {
  for (int c = 0; c < s.channels; ++c) {
    double mean = 0, variance = 0;
    for (int r = 0; r < s.rows; ++r) mean += static_cast<double>(x[at(r, c, s.channels)]) / s.rows;
    for (int r = 0; r < s.rows; ++r) variance += std::pow(x[at(r, c, s.channels)] - mean, 2) / s.rows;
    batch.mean[c] = static_cast<float>(mean);
    batch.inverse_deviation[c] = static_cast<float>(1 / std::sqrt(variance + kBatchNormEpsilon));
    const double unbiased = variance * s.rows / std::max(s.rows - 1, 1);
    running.mean[c] += kBatchNormMomentum * (static_cast<float>(mean) - running.mean[c]);
    running.variance[c] += kBatchNormMomentum * (static_cast<float>(unbiased) - running.variance[c]);
    for (int r = 0; r < s.rows; ++r) {
      const std::size_t i = at(r, c, s.channels);
      y[i] = normalised(s, x[i], scale[c], shift[c], batch.mean[c], batch.inverse_deviation[c],
                        s.residual ? residual[i] : 0.0f);
    }
  }
}

void batch_norm_backward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch, In y, Out dy,
                         Out dscale, Out dshift, Out dx) {
  for (int c = 0; c < s.channels; ++c) {
    const double mean = batch.mean[c], inverse = batch.inverse_deviation[c];
    for (int r = 0; r < s.rows; ++r) {
      const std::size_t i = at(r, c, s.channels);
      if (s.relu && s.residual && y[i] == 0) dy[i] = 0;
    }
    const auto gradient = [&](int r) {
      const std::size_t i = at(r, c, s.channels);
      if (s.residual) return static_cast<double>(dy[i]);
      const float output = normalised(s, x[i], scale[c], shift[c], batch.mean[c], batch.inverse_deviation[c], 0);
      return s.relu && output == 0 ? 0.0 : dy[i];
    };
    const auto unit = [&](int r) { return (x[at(r, c, s.channels)] - mean) * inverse; };
    double sum = 0, along_unit = 0;
    for (int r = 0; r < s.rows; ++r) {
      sum += gradient(r);
      along_unit += gradient(r) * unit(r);
    }
    dshift[c] = static_cast<float>(sum);
    dscale[c] = static_cast<float>(along_unit);
    if (dx.empty()) continue;
    for (int r = 0; r < s.rows; ++r) {
      dx[at(r, c, s.channels)] =
          static_cast<float>(scale[c] * inverse * (gradient(r) - (sum + unit(r) * along_unit) / s.rows));
    }
  }
}

void batch_norm_inference(const BatchNormShape& s, In x, In scale, In shift, const RunningMoments& running, In residual,
                          Out y) {
  for (int r = 0; r < s.rows; ++r) {
    for (int c = 0; c < s.channels; ++c) {
      const auto inverse =
          static_cast<float>(1 / std::sqrt(static_cast<double>(running.variance[c]) + kBatchNormEpsilon));
      const std::size_t i = at(r, c, s.channels);
      y[i] = normalised(s, x[i], scale[c], shift[c], running.mean[c], inverse, s.residual ? residual[i] : 0.0f);
    }
  }
}

void mean_pool_forward(const MeanPoolShape& s, In x, Out y) {
  for (int n = 0; n < s.batch; ++n) {
    for (int c = 0; c < s.channels; ++c) {
      double sum = 0;
      for (int p = 0; p < s.pixels; ++p) sum += x[at(at(n, p, s.pixels), c, s.channels)];
      y[at(n, c, s.channels)] = static_cast<float>(sum / s.pixels);
    }
  }
}

void mean_pool_backward(const MeanPoolShape& s, In dy, Out dx) {
  for (int n = 0; n < s.batch; ++n) {
    for (int p = 0; p < s.pixels; ++p) {
      for (int c = 0; c < s.channels; ++c) {
        dx[at(at(n, p, s.pixels), c, s.channels)] = dy[at(n, c, s.channels)] / static_cast<float>(s.pixels);
      }
    }
  }
}

void subsample_forward(const SubsampleShape& s, In x, Out y) {
  each_kept_pixel(s, [&](std::size_t from, std::size_t to) {
    for (int c = 0; c < s.out; ++c) y[to * s.out + c] = c < s.in ? x[from * s.in + c] : 0.0f;
  });
}

void subsample_backward(const SubsampleShape& s, In dy, Out dx) {
  std::fill(dx.begin(), dx.end(), 0.0f);
  each_kept_pixel(s, [&](std::size_t from, std::size_t to) {
    for (int c = 0; c < std::min(s.in, s.out); ++c) dx[from * s.in + c] = dy[to * s.out + c];
  });
}

}  // namespace syncopate::worker::reference

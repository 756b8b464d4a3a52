#include "worker/backend/batch_norm_ops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "worker/backend/vector_ops.h"

namespace syncopate::worker {
namespace {

// Channels are worked on in tiles of a cache line, whose sums stay in registers.
constexpr int kTile = 16;
// So many rows are summed in float before they are added up in double: short enough not to lose digits.
constexpr int kRowsAtOnce = 128;
// Neighbouring rows have sums of their own, so that an addition need not wait for the one before.
constexpr int kLanes = 4;

// Calls visit(first channel, channels of the tile); the number of a full tile is a constant to the compiler.
template <typename Visit>
void each_tile(int channels, Visit visit) {
  int begin = 0;
  for (; begin + kTile <= channels; begin += kTile) visit(begin, std::integral_constant<int, kTile>());
  if (begin < channels) visit(begin, channels - begin);
}

struct Sums {
  double first[kTile] = {};
  double second[kTile] = {};
};

// Adds up terms(row, c, first, second) over all rows, where terms adds to its two last arguments.
template <typename Width, typename Terms>
Sums sums_over_rows(int rows, Width width, Terms terms) {
  Sums sums;
  for (int begin = 0; begin < rows; begin += kRowsAtOnce) {
    const int end = std::min(begin + kRowsAtOnce, rows);
    float first[kLanes][kTile] = {}, second[kLanes][kTile] = {};
    int row = begin;
    for (; row + kLanes <= end; row += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int c = 0; c < width; ++c) terms(row + lane, c, first[lane][c], second[lane][c]);
      }
    }
    for (; row < end; ++row) {
      for (int c = 0; c < width; ++c) terms(row, c, first[0][c], second[0][c]);
    }
    for (const auto& lane : first) {
      for (int c = 0; c < width; ++c) sums.first[c] += lane[c];
    }
    for (const auto& lane : second) {
      for (int c = 0; c < width; ++c) sums.second[c] += lane[c];
    }
  }
  return sums;
}

// y = (x - mean) · factor + shift, for a tile's channels.
struct Line {
  // Spans are those of the tile's channels.
  Line(In scale, In shifts, In means, In inverse_deviation) {
    for (std::size_t c = 0; c < scale.size(); ++c) {
      mean[c] = means[c];
      factor[c] = scale[c] * inverse_deviation[c];
      shift[c] = shifts[c];
    }
  }
  float at(float x, int c) const { return (x - mean[c]) * factor[c] + shift[c]; }

  float mean[kTile] = {}, factor[kTile] = {}, shift[kTile] = {};
};

// The line is a copy, so that the compiler sees that y does not overlap it.
template <bool kResidual, typename Width>
void apply_to_rows(const BatchNormShape& s, Width width, Line line, const float* __restrict x,
                   [[maybe_unused]] const float* __restrict residual, float* __restrict y) {
  for (int row = 0; row < s.rows; ++row, x += s.channels, y += s.channels) {
    for (int c = 0; c < width; ++c) {
      float value = line.at(x[c], c);
      if constexpr (kResidual) value += residual[c];
      y[c] = s.relu && value < 0.0f ? 0.0f : value;
    }
    if constexpr (kResidual) residual += s.channels;
  }
}

// For the channels from `begin` on.
template <typename Width>
void apply(const BatchNormShape& s, int begin, Width width, const Line& line, In x, In residual, Out y) {
  if (s.residual) {
    apply_to_rows<true>(s, width, line, x.data() + begin, residual.data() + begin, y.data() + begin);
  } else {
    apply_to_rows<false>(s, width, line, x.data() + begin, nullptr, y.data() + begin);
  }
}

// Around the first row's values, so that what all rows have in common costs no digits (Chan, Golub & LeVeque 1983,
// "Algorithms for computing the sample variance", section 2).
template <typename Width>
void take_moments(const BatchNormShape& s, int begin, Width width, In x, const BatchMoments& batch,
                  const RunningMoments& running) {
  const float* __restrict values = x.data() + begin;
  float pivot[kTile] = {};
  std::copy_n(values, static_cast<int>(width), pivot);
  const Sums sums = sums_over_rows(s.rows, width, [&](int row, int c, float& first, float& second) {
    const float difference = values[static_cast<std::size_t>(row) * s.channels + c] - pivot[c];
    first += difference;
    second += difference * difference;
  });
  for (int c = 0; c < width; ++c) {
    const double shifted_mean = sums.first[c] / s.rows;
    const double variance = std::max(0.0, sums.second[c] / s.rows - shifted_mean * shifted_mean);
    const auto mean = static_cast<float>(pivot[c] + shifted_mean);
    const auto unbiased = static_cast<float>(variance * s.rows / std::max(s.rows - 1, 1));
    batch.mean[begin + c] = mean;
    batch.inverse_deviation[begin + c] = static_cast<float>(1 / std::sqrt(variance + kBatchNormEpsilon));
    running.mean[begin + c] += kBatchNormMomentum * (mean - running.mean[begin + c]);
    running.variance[begin + c] += kBatchNormMomentum * (unbiased - running.variance[begin + c]);
  }
}

template <typename Width>
void backward_of_tile(const BatchNormShape& s, int begin, Width width, In x, In scale, In shift,
                      const BatchMoments& batch, In dy, Out dscale, Out dshift, Out dx) {
  const Line line(scale.subspan(begin, width), shift.subspan(begin, width), batch.mean.subspan(begin, width),
                  batch.inverse_deviation.subspan(begin, width));
  const float* __restrict values = x.data() + begin;
  const float* __restrict gradients = dy.data() + begin;
  // Where relu has cut the output, which is computed again rather than read again.
  const auto gradient_at = [&](std::size_t i, int c) {
    return s.relu && !(line.at(values[i], c) > 0.0f) ? 0.0f : gradients[i];
  };
  const Sums sums = sums_over_rows(s.rows, width, [&](int row, int c, float& first, float& second) {
    const std::size_t i = static_cast<std::size_t>(row) * s.channels + c;
    const float gradient = gradient_at(i, c);
    first += gradient;
    second += gradient * (values[i] - line.mean[c]);
  });
  // dx = factor · (dy - mean of dy - unit · mean of dy·unit), unit = (x - mean) · inverse_deviation.
  float common[kTile] = {}, slope[kTile] = {};
  for (int c = 0; c < width; ++c) {
    const double inverse_deviation = batch.inverse_deviation[begin + c];
    dshift[begin + c] = static_cast<float>(sums.first[c]);
    dscale[begin + c] = static_cast<float>(sums.second[c] * inverse_deviation);
    common[c] = static_cast<float>(sums.first[c] / s.rows);
    slope[c] = static_cast<float>(sums.second[c] * inverse_deviation * inverse_deviation / s.rows);
  }
  if (dx.empty()) return;
  float* __restrict result = dx.data() + begin;
  for (int row = 0; row < s.rows; ++row) {
    for (int c = 0; c < width; ++c) {
      const std::size_t i = static_cast<std::size_t>(row) * s.channels + c;
      result[i] = line.factor[c] * (gradient_at(i, c) - common[c] - (values[i] - line.mean[c]) * slope[c]);
    }
  }
}

}  // namespace

void batch_norm_forward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch,
                        const RunningMoments& running, In residual, Out y) {
  each_tile(s.channels, [&](int begin, auto width) {
    take_moments(s, begin, width, x, batch, running);
    const Line line(scale.subspan(begin, width), shift.subspan(begin, width), batch.mean.subspan(begin, width),
                    batch.inverse_deviation.subspan(begin, width));
    apply(s, begin, width, line, x, residual, y);
  });
}

void batch_norm_backward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch, In y, Out dy,
                         Out dscale, Out dshift, Out dx) {
  BatchNormShape inner = s;
  if (s.relu && s.residual) {
    relu_backward(y, dy);
    inner.relu = false;
  }
  each_tile(s.channels, [&](int begin, auto width) {
    backward_of_tile(inner, begin, width, x, scale, shift, batch, dy, dscale, dshift, dx);
  });
}

void batch_norm_inference(const BatchNormShape& s, In x, In scale, In shift, const RunningMoments& running, In residual,
                          Out y) {
  each_tile(s.channels, [&](int begin, auto width) {
    float inverse_deviation[kTile] = {};
    for (int c = 0; c < width; ++c) {
      inverse_deviation[c] = 1 / std::sqrt(running.variance[begin + c] + kBatchNormEpsilon);
    }
    const Line line(scale.subspan(begin, width), shift.subspan(begin, width), running.mean.subspan(begin, width),
                    In(inverse_deviation).first(width));
    apply(s, begin, width, line, x, residual, y);
  });
}

}  // namespace syncopate::worker

#include "worker/backend/vector_ops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace syncopate::worker {
namespace {

// One element of each window of a run of channels: takes the place of the best so far where it is larger.
void keep_larger(const float* __restrict x, float* __restrict best, unsigned char* __restrict index, int channels,
                 unsigned char number) {
  for (int c = 0; c < channels; ++c) {
    const bool larger = x[c] > best[c];
    best[c] = larger ? x[c] : best[c];
    index[c] = larger ? number : index[c];
  }
}

// The gradient of one element of each window: that of the output where the element had won, else zero.
void give_to_winner(const float* __restrict dy, const unsigned char* __restrict index, float* __restrict dx,
                    int channels, unsigned char number) {
  for (int c = 0; c < channels; ++c) dx[c] = index[c] == number ? dy[c] : 0.0f;
}

// The same, added to what other windows have given to the element.
void add_to_winner(const float* __restrict dy, const unsigned char* __restrict index, float* __restrict dx,
                   int channels, unsigned char number) {
  for (int c = 0; c < channels; ++c) dx[c] += index[c] == number ? dy[c] : 0.0f;
}

// Calls visit(offset of the window's output, image, row and column of the window's first element) for all windows; that
// element may lie outside the image.
template <typename Visit>
void each_window(const PoolShape& s, Visit visit) {
  std::size_t out = 0;
  for (int n = 0; n < s.batch; ++n) {
    for (int row = 0; row < s.out_height(); ++row) {
      for (int column = 0; column < s.out_width(); ++column, out += s.channels) {
        visit(out, n, row * s.stride - s.padding, column * s.stride - s.padding);
      }
    }
  }
}

// The windows, along one side, that hold a pixel: first .. end-1. It goes from the first pixel to the last, since a
// division for each would take as long as the rest.
struct WindowsOfPixel {
  void reach(const PoolShape& s, int pixel, int windows) {
    while (first * s.stride + s.size <= pixel + s.padding) ++first;
    while (end < windows && end * s.stride <= pixel + s.padding) ++end;
  }

  int first = 0, end = 0;
};

// Calls visit(pixel of x, pixel of y), each counted over all images.
template <typename Visit>
void each_kept_pixel(const SubsampleShape& s, Visit visit) {
  std::size_t to = 0;
  for (int n = 0; n < s.batch; ++n) {
    for (int row = 0; row < s.height; row += s.stride) {
      const std::size_t begin = (static_cast<std::size_t>(n) * s.height + row) * s.width;
      for (int column = 0; column < s.width; column += s.stride) visit(begin + column, to++);
    }
  }
}

}  // namespace

void relu_forward(Out y) {
  float* __restrict values = y.data();
  for (std::size_t i = 0; i < y.size(); ++i) values[i] = values[i] < 0.0f ? 0.0f : values[i];  // NaN stays
}

void relu_backward(In y, Out dy) {
  const float* __restrict values = y.data();
  float* __restrict gradient = dy.data();
  for (std::size_t i = 0; i < y.size(); ++i) gradient[i] = values[i] == 0.0f ? 0.0f : gradient[i];
}

void bias_forward(const BiasShape& shape, In b, Out y) {
  const float* __restrict addends = b.data();
  for (int row = 0; row < shape.rows; ++row) {
    float* __restrict to = y.data() + static_cast<std::size_t>(row) * shape.columns;
    for (int c = 0; c < shape.columns; ++c) {
      const float sum = to[c] + addends[c];
      to[c] = shape.relu && sum < 0.0f ? 0.0f : sum;
    }
  }
}

void add(In x, Out y) {
  const float* __restrict values = x.data();
  float* __restrict sums = y.data();
  for (std::size_t i = 0; i < y.size(); ++i) sums[i] += values[i];
}

void column_sums(In matrix, Out sums) {
  const std::size_t columns = sums.size();
  float* __restrict totals = sums.data();
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (std::size_t row = 0; row < matrix.size() / columns; ++row) {
    const float* __restrict values = matrix.data() + row * columns;
    for (std::size_t c = 0; c < columns; ++c) totals[c] += values[c];
  }
}

void max_pool_forward(const PoolShape& s, In x, Out y, std::span<unsigned char> index) {
  each_window(s, [&](std::size_t out, int n, int top, int left) {
    bool is_first = true;
    for (int row = std::max(top, 0); row < std::min(top + s.size, s.height); ++row) {
      for (int column = std::max(left, 0); column < std::min(left + s.size, s.width); ++column) {
        const float* const element =
            x.data() + ((static_cast<std::size_t>(n) * s.height + row) * s.width + column) * s.channels;
        const auto number = static_cast<unsigned char>((row - top) * s.size + column - left);
        if (is_first) {
          std::copy_n(element, s.channels, y.data() + out);
          std::fill_n(index.data() + out, s.channels, number);
        } else {
          keep_larger(element, y.data() + out, index.data() + out, s.channels, number);
        }
        is_first = false;
      }
    }
  });
}

// Pixel by pixel: it looks up which of its windows it has won, so that each is written once.
void max_pool_backward(const PoolShape& s, In dy, std::span<const unsigned char> index, Out dx) {
  const int out_height = s.out_height(), out_width = s.out_width();
  float* gradient = dx.data();
  for (int n = 0; n < s.batch; ++n) {
    WindowsOfPixel rows;
    for (int y = 0; y < s.height; ++y) {
      rows.reach(s, y, out_height);
      WindowsOfPixel columns;
      for (int x = 0; x < s.width; ++x, gradient += s.channels) {
        columns.reach(s, x, out_width);
        bool is_first = true;
        for (int row = rows.first; row < rows.end; ++row) {
          for (int column = columns.first; column < columns.end; ++column) {
            const std::size_t out =
                ((static_cast<std::size_t>(n) * out_height + row) * out_width + column) * s.channels;
            const int below = y + s.padding - row * s.stride, right = x + s.padding - column * s.stride;
            const auto number = static_cast<unsigned char>(below * s.size + right);
            if (is_first) {
              give_to_winner(dy.data() + out, index.data() + out, gradient, s.channels, number);
            } else {
              add_to_winner(dy.data() + out, index.data() + out, gradient, s.channels, number);
            }
            is_first = false;
          }
        }
        if (is_first) std::fill_n(gradient, s.channels, 0.0f);
      }
    }
  }
}

void mean_pool_forward(const MeanPoolShape& s, In x, Out y) {
  const std::size_t values = static_cast<std::size_t>(s.pixels) * s.channels;
  const float share = 1.0f / static_cast<float>(s.pixels);
  for (int n = 0; n < s.batch; ++n) {
    const Out means = y.subspan(static_cast<std::size_t>(n) * s.channels, s.channels);
    column_sums(x.subspan(n * values, values), means);
    for (float& mean : means) mean *= share;
  }
}

void mean_pool_backward(const MeanPoolShape& s, In dy, Out dx) {
  const float share = 1.0f / static_cast<float>(s.pixels);
  float* __restrict gradient = dx.data();
  for (int n = 0; n < s.batch; ++n) {
    const float* __restrict of_means = dy.data() + static_cast<std::size_t>(n) * s.channels;
    for (int p = 0; p < s.pixels; ++p, gradient += s.channels) {
      for (int c = 0; c < s.channels; ++c) gradient[c] = of_means[c] * share;
    }
  }
}

void subsample_forward(const SubsampleShape& s, In x, Out y) {
  std::fill(y.begin(), y.end(), 0.0f);
  const int channels = std::min(s.in, s.out);
  each_kept_pixel(s, [&](std::size_t from, std::size_t to) {
    std::copy_n(x.data() + from * s.in, channels, y.data() + to * s.out);
  });
}

void subsample_backward(const SubsampleShape& s, In dy, Out dx) {
  std::fill(dx.begin(), dx.end(), 0.0f);
  const int channels = std::min(s.in, s.out);
  each_kept_pixel(s, [&](std::size_t from, std::size_t to) {
    std::copy_n(dy.data() + to * s.out, channels, dx.data() + from * s.in);
  });
}

LossAndCorrect softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, double weight,
                                     Out dlogits) {
  LossAndCorrect result;
  const auto gradient_weight = static_cast<float>(weight);
  for (int n = 0; n < batch; ++n) {
    const In row = logits.subspan(static_cast<std::size_t>(n) * classes, classes);
    const int label = labels[n];
    if (label < 0) {
      if (!dlogits.empty()) std::ranges::fill(dlogits.subspan(static_cast<std::size_t>(n) * classes, classes), 0.0f);
      continue;
    }
    const auto largest = std::max_element(row.begin(), row.end());
    float sum = 0;
    if (dlogits.empty()) {
      for (float logit : row) sum += std::exp(logit - *largest);
    } else {
      const Out gradient = dlogits.subspan(static_cast<std::size_t>(n) * classes, classes);
      for (int c = 0; c < classes; ++c) sum += gradient[c] = std::exp(row[c] - *largest);
      const float scale = gradient_weight / (sum * static_cast<float>(batch));
      for (float& value : gradient) value *= scale;
      gradient[label] -= gradient_weight / static_cast<float>(batch);
    }
    result.loss += std::log(sum) - (row[label] - *largest);
    result.correct += largest - row.begin() == label ? 1 : 0;
  }
  result.loss = result.loss * weight / batch;
  return result;
}

}  // namespace syncopate::worker

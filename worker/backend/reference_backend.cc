// The oracle: every operation as its definition reads, summed in double precision, with no thought of speed.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <vector>

#include "worker/backend/host_backend.h"
#include "worker/backend/reference_ops.h"

namespace syncopate::worker {
namespace {

// Element (a, b, c, d) of a dense tensor whose last three dimensions are B, C, D.
std::size_t at(int a, int b, int c, int d, int B, int C, int D) {
  return ((static_cast<std::size_t>(a) * B + b) * C + c) * D + d;
}

std::size_t at(std::size_t row, int column, int columns) { return row * columns + column; }

class ReferenceBackend : public HostBackend {
 public:
  const char* name() const override { return "reference"; }

  void dense_forward(const DenseShape& s, In x, In w, In b, Out y) override {
    for (int n = 0; n < s.batch; ++n) {
      for (int o = 0; o < s.out; ++o) {
        double sum = s.bias ? b[o] : 0;
        for (int i = 0; i < s.in; ++i) sum += product(x[at(n, i, s.in)], w[at(o, i, s.in)]);
        y[at(n, o, s.out)] = static_cast<float>(s.relu ? std::max(sum, 0.0) : sum);
      }
    }
  }

  void dense_backward(const DenseShape& s, In x, In w, In dy, Out dw, Out db, Out dx) override {
    for (int o = 0; o < s.out && !dw.empty(); ++o) {
      double bias = 0;
      for (int n = 0; n < s.batch; ++n) bias += dy[at(n, o, s.out)];
      if (s.bias) db[o] = static_cast<float>(bias);
      for (int i = 0; i < s.in; ++i) {
        double sum = 0;
        for (int n = 0; n < s.batch; ++n) sum += product(dy[at(n, o, s.out)], x[at(n, i, s.in)]);
        dw[at(o, i, s.in)] = static_cast<float>(sum);
      }
    }
    if (dx.empty()) return;
    for (int n = 0; n < s.batch; ++n) {
      for (int i = 0; i < s.in; ++i) {
        double sum = 0;
        for (int o = 0; o < s.out; ++o) sum += product(dy[at(n, o, s.out)], w[at(o, i, s.in)]);
        dx[at(n, i, s.in)] = static_cast<float>(sum);
      }
    }
  }

  void conv2d_forward(const ConvShape& s, In x, In w, In b, Out y) override {
    for (int n = 0; n < s.batch; ++n) {
      for (int row = 0; row < s.out_height(); ++row) {
        for (int column = 0; column < s.out_width(); ++column) {
          for (int o = 0; o < s.out; ++o) {
            double sum = s.bias ? b[o] : 0;
            each_tap(s, [&](int ky, int kx, int i) {
              sum += product(input(s, x, n, row * s.stride + ky, column * s.stride + kx, i),
                             w[at(o, ky, kx, i, s.kernel, s.kernel, s.in)]);
            });
            y[at(n, row, column, o, s.out_height(), s.out_width(), s.out)] = static_cast<float>(sum);
          }
        }
      }
    }
  }

  void conv2d_backward(const ConvShape& s, In x, In w, In dy, Out dw, Out db, Out dx) override {
    for (int o = 0; o < s.out && !dw.empty(); ++o) {
      double bias = 0;
      each_output(s, [&](int n, int row, int column) { bias += output(s, dy, n, row, column, o); });
      if (s.bias) db[o] = static_cast<float>(bias);
      each_tap(s, [&](int ky, int kx, int i) {
        double sum = 0;
        each_output(s, [&](int n, int row, int column) {
          sum +=
              product(output(s, dy, n, row, column, o), input(s, x, n, row * s.stride + ky, column * s.stride + kx, i));
        });
        dw[at(o, ky, kx, i, s.kernel, s.kernel, s.in)] = static_cast<float>(sum);
      });
    }
    if (!dx.empty()) conv2d_backward_data(s, w, dy, dx);
  }

  void relu_forward(Out y) override {
    for (float& value : y) value = std::max(value, 0.0f);
  }

  void relu_backward(In y, Out dy) override {
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (y[i] == 0.0f) dy[i] = 0.0f;
    }
  }

  void bias_forward(const BiasShape& s, In b, Out y) override {
    for (int row = 0; row < s.rows; ++row) {
      for (int c = 0; c < s.columns; ++c) {
        float& element = y[at(row, c, s.columns)];
        element += b[c];
        if (s.relu) element = std::max(element, 0.0f);
      }
    }
  }

  void bias_backward(const BiasShape& s, In y, Out dy, Out db) override {
    if (s.relu) relu_backward(y, dy);
    for (int c = 0; c < s.columns; ++c) {
      double sum = 0;
      for (int row = 0; row < s.rows; ++row) sum += dy[at(row, c, s.columns)];
      db[c] = static_cast<float>(sum);
    }
  }

  void add(In x, Out y) override {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  }

  void max_pool_forward(const PoolShape& s, In x, Out y, std::span<unsigned char> index) override {
    each_window(s, [&](int n, int row, int column, int c) {
      int best = -1;
      for (int k = 0; k < s.size * s.size; ++k) {
        if (!inside(s, row, column, k)) continue;
        if (best < 0 || x[window_at(s, n, row, column, c, k)] > x[window_at(s, n, row, column, c, best)]) best = k;
      }
      const std::size_t out = at(n, row, column, c, s.out_height(), s.out_width(), s.channels);
      y[out] = x[window_at(s, n, row, column, c, best)];
      index[out] = static_cast<unsigned char>(best);
    });
  }

  void max_pool_backward(const PoolShape& s, In dy, std::span<const unsigned char> index, Out dx) override {
    std::fill(dx.begin(), dx.end(), 0.0f);
    each_window(s, [&](int n, int row, int column, int c) {
      const std::size_t out = at(n, row, column, c, s.out_height(), s.out_width(), s.channels);
      dx[window_at(s, n, row, column, c, index[out])] += dy[out];
    });
  }

  void batch_norm_forward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch,
                          const RunningMoments& running, In residual, Out y) override {
    reference::batch_norm_forward(s, x, scale, shift, batch, running, residual, y);
  }
  void batch_norm_backward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch, In y, Out dy,
                           Out dscale, Out dshift, Out dx) override {
    reference::batch_norm_backward(s, x, scale, shift, batch, y, dy, dscale, dshift, dx);
  }
  void batch_norm_inference(const BatchNormShape& s, In x, In scale, In shift, const RunningMoments& running,
                            In residual, Out y) override {
    reference::batch_norm_inference(s, x, scale, shift, running, residual, y);
  }

  void mean_pool_forward(const MeanPoolShape& s, In x, Out y) override { reference::mean_pool_forward(s, x, y); }
  void mean_pool_backward(const MeanPoolShape& s, In dy, Out dx) override { reference::mean_pool_backward(s, dy, dx); }
  void subsample_forward(const SubsampleShape& s, In x, Out y) override { reference::subsample_forward(s, x, y); }
  void subsample_backward(const SubsampleShape& s, In dy, Out dx) override { reference::subsample_backward(s, dy, dx); }

  void embedding_forward(const EmbeddingShape& shape, std::span<const int> ids, In tokens, In positions,
                         Out y) override {
    reference::embedding_forward(shape, ids, tokens, positions, y);
  }
  void embedding_backward(const EmbeddingShape& shape, std::span<const int> ids, In dy, Out dtokens,
                          Out dpositions) override {
    reference::embedding_backward(shape, ids, dy, dtokens, dpositions);
  }
  void layer_norm_forward(const LayerNormShape& shape, In x, In gamma, In beta, Out y, Floats moments) override {
    reference::layer_norm_forward(shape, x, gamma, beta, y, moments);
  }
  void layer_norm_backward(const LayerNormShape& shape, In x, In gamma, ConstFloats moments, In dy, In residual,
                           Out dgamma, Out dbeta, Out dx) override {
    reference::layer_norm_backward(shape, x, gamma, moments, dy, residual, dgamma, dbeta, dx);
  }
  void gelu_forward(In x, Out y) override { reference::gelu_forward(x, y); }
  void gelu_backward(In x, In dy, Out dx) override { reference::gelu_backward(x, dy, dx); }
  void attention_forward(const AttentionShape& shape, In qkv, Out y, Floats probabilities) override {
    reference::attention_forward(shape, qkv, y, probabilities);
  }
  void attention_backward(const AttentionShape& shape, In qkv, In /*y*/, In dy, Floats probabilities,
                          Out dqkv) override {
    reference::attention_backward(shape, qkv, dy, probabilities, dqkv);
  }

  void softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, double weight,
                             Out dlogits) override {
    loss_ = {};
    for (int n = 0; n < batch; ++n) {
      if (labels[n] < 0) {
        if (!dlogits.empty()) std::ranges::fill(dlogits.subspan(at(n, 0, classes), classes), 0.0f);
        continue;
      }
      const In row = logits.subspan(at(n, 0, classes), classes);
      const auto largest = std::max_element(row.begin(), row.end());
      double sum = 0;
      for (float logit : row) sum += std::exp(static_cast<double>(logit) - *largest);
      loss_.loss += (std::log(sum) - (static_cast<double>(row[labels[n]]) - *largest)) * weight / batch;
      if (largest - row.begin() == labels[n]) ++loss_.correct;
      if (dlogits.empty()) continue;
      for (int c = 0; c < classes; ++c) {
        const double probability = std::exp(static_cast<double>(row[c]) - *largest) / sum;
        dlogits[at(n, c, classes)] = static_cast<float>((probability - (c == labels[n] ? 1 : 0)) * weight / batch);
      }
    }
  }

 private:
  static double product(float a, float b) { return static_cast<double>(a) * b; }

  template <typename Visit>
  static void each_tap(const ConvShape& s, Visit visit) {
    for (int ky = 0; ky < s.kernel; ++ky) {
      for (int kx = 0; kx < s.kernel; ++kx) {
        for (int i = 0; i < s.in; ++i) visit(ky, kx, i);
      }
    }
  }

  template <typename Visit>
  static void each_output(const ConvShape& s, Visit visit) {
    for (int n = 0; n < s.batch; ++n) {
      for (int row = 0; row < s.out_height(); ++row) {
        for (int column = 0; column < s.out_width(); ++column) visit(n, row, column);
      }
    }
  }

  // Returns an element of the images with the zeros around them.
  static float input(const ConvShape& s, In x, int n, int padded_row, int padded_column, int i) {
    const int row = padded_row - s.padding;
    const int column = padded_column - s.padding;
    const bool inside = row >= 0 && row < s.height && column >= 0 && column < s.width;
    return inside ? x[at(n, row, column, i, s.height, s.width, s.in)] : 0.0f;
  }

  static float output(const ConvShape& s, In y, int n, int row, int column, int o) {
    return y[at(n, row, column, o, s.out_height(), s.out_width(), s.out)];
  }

  static void conv2d_backward_data(const ConvShape& s, In w, In dy, Out dx) {
    for (int n = 0; n < s.batch; ++n) {
      for (int row = 0; row < s.height; ++row) {
        for (int column = 0; column < s.width; ++column) {
          for (int i = 0; i < s.in; ++i) {
            dx[at(n, row, column, i, s.height, s.width, s.in)] = input_gradient(s, w, dy, n, row, column, i);
          }
        }
      }
    }
  }

  // Sums over all outputs that this input element took part in.
  static float input_gradient(const ConvShape& s, In w, In dy, int n, int row, int column, int i) {
    double sum = 0;
    for (int ky = 0; ky < s.kernel; ++ky) {
      for (int kx = 0; kx < s.kernel; ++kx) {
        const int y = row + s.padding - ky;
        const int x = column + s.padding - kx;
        if (y < 0 || x < 0 || y % s.stride != 0 || x % s.stride != 0) continue;
        if (y / s.stride >= s.out_height() || x / s.stride >= s.out_width()) continue;
        for (int o = 0; o < s.out; ++o) {
          sum +=
              product(output(s, dy, n, y / s.stride, x / s.stride, o), w[at(o, ky, kx, i, s.kernel, s.kernel, s.in)]);
        }
      }
    }
    return static_cast<float>(sum);
  }

  template <typename Visit>
  static void each_window(const PoolShape& s, Visit visit) {
    for (int n = 0; n < s.batch; ++n) {
      for (int row = 0; row < s.out_height(); ++row) {
        for (int column = 0; column < s.out_width(); ++column) {
          for (int c = 0; c < s.channels; ++c) visit(n, row, column, c);
        }
      }
    }
  }

  // Where element `k` of a window lies in the image.
  static int row_of(const PoolShape& s, int row, int k) { return row * s.stride - s.padding + k / s.size; }
  static int column_of(const PoolShape& s, int column, int k) { return column * s.stride - s.padding + k % s.size; }

  static bool inside(const PoolShape& s, int row, int column, int k) {
    const int y = row_of(s, row, k), x = column_of(s, column, k);
    return y >= 0 && y < s.height && x >= 0 && x < s.width;
  }

  static std::size_t window_at(const PoolShape& s, int n, int row, int column, int c, int k) {
    return at(n, row_of(s, row, k), column_of(s, column, k), c, s.height, s.width, s.channels);
  }
};

class AddressBackend final : public ReferenceBackend {
 public:
  AddressBackend(bool stores_as_gpu, ElementType element) : stores_as_gpu_(stores_as_gpu), element_(element) {}
  ~AddressBackend() override {
    for (const std::span<std::byte> part : reserved_) munmap(part.data(), part.size());
  }

  std::span<std::byte> allocate(std::size_t bytes) override {
    if (bytes == 0) return {};
    void* const begin = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) throw std::bad_alloc();
    allocated_ += bytes;
    return reserved_.emplace_back(static_cast<std::byte*>(begin), bytes);
  }
  std::size_t allocated() const override { return allocated_; }
  ElementType element_type() const override { return element_; }
  void upload(ConstFloats /*host*/, Out /*tensor*/) override {}
  std::size_t attention_storage(const AttentionShape& shape) const override {
    return stores_as_gpu_ ? shape.row_statistics() : shape.probabilities();
  }

 private:
  const bool stores_as_gpu_;
  const ElementType element_;
  std::size_t allocated_ = 0;
  std::vector<std::span<std::byte>> reserved_;
};

}  // namespace

std::unique_ptr<ComputeBackend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

std::unique_ptr<ComputeBackend> make_address_backend(bool stores_as_gpu, ElementType element) {
  return std::make_unique<AddressBackend>(stores_as_gpu, element);
}

}  // namespace syncopate::worker

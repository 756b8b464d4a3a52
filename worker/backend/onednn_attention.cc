#include "worker/backend/onednn_attention.h"

#include <cmath>

#include "worker/backend/sequence_ops.h"

namespace syncopate::worker {
namespace {

// A row-major matrix that lies in a larger one, whose rows are `stride` apart.
template <typename T>
struct Matrix {
  T* data;
  int stride;
  char transposed = 'N';

  Matrix t() const { return {data, stride, 'T'}; }
};
using InMatrix = Matrix<const float>;
using OutMatrix = Matrix<float>;

// c(rows, columns) = scale · a(rows, inner) · b(inner, columns)
void multiply(int rows, int columns, int inner, float scale, const InMatrix& a, const InMatrix& b, const OutMatrix& c) {
  dnnl::sgemm(a.transposed, b.transposed, rows, columns, inner, scale, a.data, a.stride, b.data, b.stride, 0.0f, c.data,
              c.stride);
}

// Calls visit(first element of the head in qkv, in y, in probabilities).
template <typename Visit>
void each_head(const AttentionShape& s, Visit visit) {
  const auto rows = static_cast<std::size_t>(s.context), width = static_cast<std::size_t>(s.width);
  std::size_t in_probabilities = 0;
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      const std::size_t column = static_cast<std::size_t>(h) * s.head_width();
      visit(b * rows * 3 * width + column, b * rows * width + column, in_probabilities);
      in_probabilities += rows * rows;
    }
  }
}

float scale_of(const AttentionShape& s) { return 1.0f / std::sqrt(static_cast<float>(s.head_width())); }

}  // namespace

OneDnnAttention::OneDnnAttention(const AttentionShape& shape, const dnnl::engine& /*engine*/)
    : shape_(shape), score_gradients_(static_cast<std::size_t>(shape.context) * shape.context) {}

void OneDnnAttention::forward(In qkv, Out y, Out probabilities) {
  const int T = shape_.context, C = shape_.width, D = shape_.head_width();
  each_head(shape_, [&](std::size_t in_qkv, std::size_t in_y, std::size_t in_probabilities) {
    const float* const head = qkv.data() + in_qkv;
    const InMatrix q{head, 3 * C}, k{head + C, 3 * C}, v{head + 2 * C, 3 * C};
    const Out p = probabilities.subspan(in_probabilities, score_gradients_.size());
    multiply(T, T, D, scale_of(shape_), q, k.t(), {p.data(), T});
    causal_softmax(T, p);
    multiply(T, D, T, 1.0f, {p.data(), T}, v, {y.data() + in_y, C});
  });
}

void OneDnnAttention::backward(In qkv, In dy, Out probabilities, Out dqkv) {
  const int T = shape_.context, C = shape_.width, D = shape_.head_width();
  const InMatrix ds{score_gradients_.data(), T};
  each_head(shape_, [&](std::size_t in_qkv, std::size_t in_y, std::size_t in_probabilities) {
    const float* const head = qkv.data() + in_qkv;
    float* const gradient = dqkv.data() + in_qkv;
    const InMatrix q{head, 3 * C}, k{head + C, 3 * C}, v{head + 2 * C, 3 * C}, dout{dy.data() + in_y, C};
    const In p = probabilities.subspan(in_probabilities, score_gradients_.size());
    multiply(T, T, D, 1.0f, dout, v.t(), {score_gradients_.data(), T});
    causal_softmax_backward(T, p, score_gradients_.span());
    multiply(T, D, T, 1.0f, InMatrix{p.data(), T}.t(), dout, {gradient + 2 * C, 3 * C});
    multiply(T, D, T, scale_of(shape_), ds, k, {gradient, 3 * C});
    multiply(T, D, T, scale_of(shape_), ds.t(), q, {gradient + C, 3 * C});
  });
}

}  // namespace syncopate::worker

#include "worker/backend/sequence_ops.h"

#include <algorithm>
#include <cmath>

#include "worker/backend/vector_math.h"

namespace syncopate::worker {
namespace {

void add_row(const float* __restrict x, float* __restrict y, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) y[i] += x[i];
}

// x/2 · (1 + tanh(u)) = x · sigmoid(2u) = x / (1 + e^-2u); 2u = x · (kLinear + kCubic x²).
constexpr float kLinear = 1.5957691216057308f;  // 2 · sqrt(2/pi)
constexpr float kCubic = 0.071354816f;          // kLinear · 0.044715

float sigmoid_of_gelu(float x) { return 1.0f / (1.0f + fast_exp(-x * (kLinear + kCubic * x * x))); }

}  // namespace

void embedding_forward(const EmbeddingShape& s, std::span<const int> ids, In tokens, In positions, Out y) {
  const auto width = static_cast<std::size_t>(s.width);
  for (int row = 0; row < s.rows(); ++row) {
    float* const to = y.data() + row * width;
    std::copy_n(tokens.data() + ids[row] * width, width, to);
    add_row(positions.data() + (row % s.context) * width, to, width);
  }
}

void embedding_backward(const EmbeddingShape& s, std::span<const int> ids, In dy, Out dtokens, Out dpositions) {
  const auto width = static_cast<std::size_t>(s.width);
  std::ranges::fill(dpositions, 0.0f);
  for (int row = 0; row < s.rows(); ++row) {
    const float* const from = dy.data() + row * width;
    add_row(from, dtokens.data() + ids[row] * width, width);
    add_row(from, dpositions.data() + (row % s.context) * width, width);
  }
}

void layer_norm_forward(const LayerNormShape& s, In x, In gamma, In beta, Out y, Floats moments) {
  const auto width = static_cast<std::size_t>(s.width);
  const float share = 1.0f / static_cast<float>(s.width);
  for (int row = 0; row < s.rows; ++row) {
    const float* __restrict from = x.data() + row * width;
    float* __restrict to = y.data() + row * width;
    const float mean = share * sum_of(width, [&](std::size_t c) { return from[c]; });
    const float variance = share * sum_of(width, [&](std::size_t c) { return (from[c] - mean) * (from[c] - mean); });
    const float scale = 1.0f / std::sqrt(variance + kLayerNormEpsilon);
    const float* __restrict g = gamma.data();
    const float* __restrict b = beta.data();
    for (std::size_t c = 0; c < width; ++c) to[c] = (from[c] - mean) * scale * g[c] + b[c];
    moments[2 * static_cast<std::size_t>(row)] = mean;
    moments[2 * static_cast<std::size_t>(row) + 1] = scale;
  }
}

void layer_norm_backward(const LayerNormShape& s, In x, In gamma, ConstFloats moments, In dy, In residual, Out dgamma,
                         Out dbeta, Out dx) {
  const auto width = static_cast<std::size_t>(s.width);
  const float share = 1.0f / static_cast<float>(s.width);
  const float* __restrict g = gamma.data();
  std::ranges::fill(dgamma, 0.0f);
  std::ranges::fill(dbeta, 0.0f);
  for (int row = 0; row < s.rows; ++row) {
    const float* __restrict from = x.data() + row * width;
    const float* __restrict gradient = dy.data() + row * width;
    const float mean = moments[2 * static_cast<std::size_t>(row)];
    const float scale = moments[2 * static_cast<std::size_t>(row) + 1];
    float* __restrict of_gamma = dgamma.data();
    float* __restrict of_beta = dbeta.data();
    for (std::size_t c = 0; c < width; ++c) {
      of_gamma[c] += gradient[c] * ((from[c] - mean) * scale);
      of_beta[c] += gradient[c];
    }
    if (dx.empty()) continue;
    const float sum = share * sum_of(width, [&](std::size_t c) { return gradient[c] * g[c]; });
    const float products =
        share * sum_of(width, [&](std::size_t c) { return gradient[c] * g[c] * ((from[c] - mean) * scale); });
    float* __restrict to = dx.data() + row * width;
    for (std::size_t c = 0; c < width; ++c) {
      to[c] = scale * (gradient[c] * g[c] - sum - (from[c] - mean) * scale * products);
    }
    if (!residual.empty()) add_row(residual.data() + row * width, to, width);
  }
}

void gelu_forward(In x, Out y) {
  const float* __restrict from = x.data();
  float* __restrict to = y.data();
  for (std::size_t i = 0; i < x.size(); ++i) to[i] = from[i] * sigmoid_of_gelu(from[i]);
}

void gelu_backward(In x, In dy, Out dx) {
  const float* __restrict from = x.data();
  const float* __restrict gradient = dy.data();
  float* __restrict to = dx.data();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float sigmoid = sigmoid_of_gelu(from[i]);
    const float slope = kLinear + 3 * kCubic * from[i] * from[i];
    to[i] = gradient[i] * (sigmoid + from[i] * sigmoid * (1.0f - sigmoid) * slope);
  }
}

void causal_softmax(int context, Out scores) {
  const auto size = static_cast<std::size_t>(context);
  for (std::size_t t = 0; t < size; ++t) {
    float* __restrict row = scores.data() + t * size;
    const float largest = largest_of(row, t + 1);
    for (std::size_t i = 0; i < size; ++i) {
      const float power = fast_exp(row[i] - largest);
      row[i] = i <= t ? power : 0.0f;
    }
    const float share = 1.0f / sum_of(size, [&](std::size_t i) { return row[i]; });
    for (std::size_t i = 0; i < size; ++i) row[i] *= share;
  }
}

void causal_softmax_backward(int context, In p, Out dp) {
  const auto size = static_cast<std::size_t>(context);
  for (std::size_t t = 0; t < size; ++t) {
    const float* __restrict probability = p.data() + t * size;
    float* __restrict row = dp.data() + t * size;
    const float mean = sum_of(t + 1, [&](std::size_t i) { return probability[i] * row[i]; });
    for (std::size_t i = 0; i < size; ++i) row[i] = i <= t ? probability[i] * (row[i] - mean) : 0.0f;
  }
}

}  // namespace syncopate::worker

#include <algorithm>
#include <cmath>
#include <numbers>

#include "worker/backend/reference_ops.h"

namespace syncopate::worker::reference {
namespace {

double product(float a, float b) { return static_cast<double>(a) * b; }

std::size_t at(int row, int column, int columns) { return static_cast<std::size_t>(row) * columns + column; }

// u of gelu = x/2 · (1 + tanh(u)), and its slope.
const double kGeluScale = std::sqrt(2 / std::numbers::pi);
constexpr double kGeluCubic = 0.044715;

double gelu_slope(double x) {
  const double tanh = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
  const double slope_of_u = kGeluScale * (1 + 3 * kGeluCubic * x * x);
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * slope_of_u;
}

// One head of one text: where its parts lie.
struct Head {
  enum Part { kQuery, kKey, kValue };

  const AttentionShape& s;
  int batch, head;

  std::size_t in_qkv(Part part, int position, int column) const {
    return at(batch * s.context + position, part * s.width + head * s.head_width() + column, 3 * s.width);
  }
  std::size_t in_y(int position, int column) const {
    return at(batch * s.context + position, head * s.head_width() + column, s.width);
  }
  std::size_t in_probabilities(int query, int key) const {
    return at((batch * s.heads + head) * s.context + query, key, s.context);
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(s.head_width())); }
};

template <typename Visit>
void each_head(const AttentionShape& s, Visit visit) {
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) visit(Head{s, b, h});
  }
}

}  // namespace

void embedding_forward(const EmbeddingShape& s, std::span<const int> ids, In tokens, In positions, Out y) {
  for (int row = 0; row < s.rows(); ++row) {
    for (int c = 0; c < s.width; ++c) {
      y[at(row, c, s.width)] = tokens[at(ids[row], c, s.width)] + positions[at(row % s.context, c, s.width)];
    }
  }
}

void embedding_backward(const EmbeddingShape& s, std::span<const int> ids, In dy, Out dtokens, Out dpositions) {
  std::ranges::fill(dpositions, 0.0f);
  for (int row = 0; row < s.rows(); ++row) {
    for (int c = 0; c < s.width; ++c) {
      dtokens[at(ids[row], c, s.width)] += dy[at(row, c, s.width)];
      dpositions[at(row % s.context, c, s.width)] += dy[at(row, c, s.width)];
    }
  }
}

void layer_norm_forward(const LayerNormShape& s, In x, In gamma, In beta, Out y, Floats moments) {
  for (int row = 0; row < s.rows; ++row) {
    double mean = 0, variance = 0;
    for (int c = 0; c < s.width; ++c) mean += static_cast<double>(x[at(row, c, s.width)]) / s.width;
    for (int c = 0; c < s.width; ++c) variance += std::pow(x[at(row, c, s.width)] - mean, 2) / s.width;
    const double scale = 1 / std::sqrt(variance + kLayerNormEpsilon);
    for (int c = 0; c < s.width; ++c) {
      y[at(row, c, s.width)] = static_cast<float>((x[at(row, c, s.width)] - mean) * scale * gamma[c] + beta[c]);
    }
    moments[at(row, 0, 2)] = static_cast<float>(mean);
    moments[at(row, 1, 2)] = static_cast<float>(scale);
  }
}

void layer_norm_backward(const LayerNormShape& s, In x, In gamma, ConstFloats moments, In dy, In residual, Out dgamma,
                         Out dbeta, Out dx) {
  const auto normalized = [&](int row, int c) {
    return (static_cast<double>(x[at(row, c, s.width)]) - moments[at(row, 0, 2)]) * moments[at(row, 1, 2)];
  };
  for (int c = 0; c < s.width; ++c) {
    double sum = 0, sum_of_products = 0;
    for (int row = 0; row < s.rows; ++row) {
      sum += dy[at(row, c, s.width)];
      sum_of_products += dy[at(row, c, s.width)] * normalized(row, c);
    }
    dbeta[c] = static_cast<float>(sum);
    dgamma[c] = static_cast<float>(sum_of_products);
  }
  if (dx.empty()) return;
  for (int row = 0; row < s.rows; ++row) {
    double mean = 0, mean_of_products = 0;
    for (int c = 0; c < s.width; ++c) {
      const double gradient = static_cast<double>(dy[at(row, c, s.width)]) * gamma[c];
      mean += gradient / s.width;
      mean_of_products += gradient * normalized(row, c) / s.width;
    }
    for (int c = 0; c < s.width; ++c) {
      const double gradient = static_cast<double>(dy[at(row, c, s.width)]) * gamma[c];
      const double past = residual.empty() ? 0 : residual[at(row, c, s.width)];
      dx[at(row, c, s.width)] =
          static_cast<float>(moments[at(row, 1, 2)] * (gradient - mean - normalized(row, c) * mean_of_products) + past);
    }
  }
}

void gelu_forward(In x, Out y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    const double u = kGeluScale * (value + kGeluCubic * value * value * value);
    y[i] = static_cast<float>(0.5 * value * (1 + std::tanh(u)));
  }
}

void gelu_backward(In x, In dy, Out dx) {
  for (std::size_t i = 0; i < x.size(); ++i) dx[i] = static_cast<float>(dy[i] * gelu_slope(x[i]));
}

void attention_forward(const AttentionShape& s, In qkv, Out y, Floats probabilities) {
  each_head(s, [&](const Head& head) {
    const auto score = [&](int t, int key) {
      double sum = 0;
      for (int d = 0; d < s.head_width(); ++d) {
        sum += product(qkv[head.in_qkv(Head::kQuery, t, d)], qkv[head.in_qkv(Head::kKey, key, d)]);
      }
      return head.scale() * sum;
    };
    for (int t = 0; t < s.context; ++t) {
      double largest = score(t, 0), total = 0;
      for (int key = 1; key <= t; ++key) largest = std::max(largest, score(t, key));
      for (int key = 0; key <= t; ++key) total += std::exp(score(t, key) - largest);
      const Out p = probabilities.subspan(head.in_probabilities(t, 0), s.context);
      for (int key = 0; key < s.context; ++key) {
        p[key] = key <= t ? static_cast<float>(std::exp(score(t, key) - largest) / total) : 0.0f;
      }
      for (int d = 0; d < s.head_width(); ++d) {
        double sum = 0;
        for (int key = 0; key <= t; ++key) sum += product(p[key], qkv[head.in_qkv(Head::kValue, key, d)]);
        y[head.in_y(t, d)] = static_cast<float>(sum);
      }
    }
  });
}

void attention_backward(const AttentionShape& s, In qkv, In dy, Floats probabilities, Out dqkv) {
  each_head(s, [&](const Head& head) {
    const int T = s.context;
    const auto p = [&](int t, int key) -> float& { return probabilities[head.in_probabilities(t, key)]; };
    // dv[s] = sum over t of p[t][s] dy[t]
    for (int key = 0; key < T; ++key) {
      for (int d = 0; d < s.head_width(); ++d) {
        double sum = 0;
        for (int t = key; t < T; ++t) sum += product(p(t, key), dy[head.in_y(t, d)]);
        dqkv[head.in_qkv(Head::kValue, key, d)] = static_cast<float>(sum);
      }
    }
    // The gradient of a score, in the probability's place: p · (dp - sum of p dp), with dp[t][s] = dy[t] · v[s].
    const auto dp = [&](int t, int key) {
      double sum = 0;
      for (int d = 0; d < s.head_width(); ++d) {
        sum += product(dy[head.in_y(t, d)], qkv[head.in_qkv(Head::kValue, key, d)]);
      }
      return sum;
    };
    for (int t = 0; t < T; ++t) {
      double mean = 0;
      for (int key = 0; key <= t; ++key) mean += p(t, key) * dp(t, key);
      for (int key = 0; key <= t; ++key) p(t, key) = static_cast<float>(p(t, key) * (dp(t, key) - mean));
    }
    // dq[t] = scale · sum over s of dscore[t][s] k[s]; dk[s] likewise over t.
    for (int row = 0; row < T; ++row) {
      for (int d = 0; d < s.head_width(); ++d) {
        double of_query = 0, of_key = 0;
        for (int key = 0; key <= row; ++key) of_query += product(p(row, key), qkv[head.in_qkv(Head::kKey, key, d)]);
        for (int t = row; t < T; ++t) of_key += product(p(t, row), qkv[head.in_qkv(Head::kQuery, t, d)]);
        dqkv[head.in_qkv(Head::kQuery, row, d)] = static_cast<float>(head.scale() * of_query);
        dqkv[head.in_qkv(Head::kKey, row, d)] = static_cast<float>(head.scale() * of_key);
      }
    }
  });
}

}  // namespace syncopate::worker::reference

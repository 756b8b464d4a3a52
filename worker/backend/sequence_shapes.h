// Shapes of the operations on sequences: B texts of T positions each; a position is a row of C values.
#pragma once

#include <cstddef>

namespace syncopate::worker {

struct EmbeddingShape {
  int batch = 0, context = 0, width = 0, vocabulary = 0;  // B, T, C, V
  int rows() const { return batch * context; }
  bool operator==(const EmbeddingShape&) const = default;
};

struct LayerNormShape {
  int rows = 0, width = 0;
  bool operator==(const LayerNormShape&) const = default;
};

// Added to a variance, so that a constant row can be normalised (Ba et al. 2016, "Layer normalization"; the value is
// GPT-2's).
inline constexpr float kLayerNormEpsilon = 1e-5f;

struct AttentionShape {
  int batch = 0, context = 0, heads = 0, width = 0;  // B, T, H, C, a multiple of H
  int head_width() const { return width / heads; }
  int rows() const { return batch * context; }
  // The number of all heads' probabilities, (B, H, T, T).
  std::size_t probabilities() const { return static_cast<std::size_t>(batch) * heads * context * context; }
  // The number of all rows' statistics, (B, H, T, 2): what attention keeps that works by tiles (Dao et al. 2022).
  std::size_t row_statistics() const { return std::size_t{2} * batch * heads * context; }
  bool operator==(const AttentionShape&) const = default;
};

}  // namespace syncopate::worker

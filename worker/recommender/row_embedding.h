// RowEmbedding: a table of which each id of a batch takes a row. In the host's memory.
//
// Sparse, it is a row-sparse table of the layout (common/param_layout.h), and the arena has room for the rows of one
// batch. Dense, it is an ordinary tensor, whose gradient is zero where no id asks. Both begin with the same values, and
// sum the gradients of a row in the same order: that of the ids in the batch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "worker/data/dataset.h"
#include "worker/layers/layer.h"
#include "worker/recommender/embedding_kind.h"
#include "worker/recommender/row_lookup.h"

namespace syncopate::worker {

class RowEmbedding {
 public:
  // Rows begin uniform in ±kInitialLimit.
  static constexpr float kInitialLimit = 0.05f;

  // Appends its tensor, named after the field, to the layout. A sample has `id_columns` ids, of which the field's begin
  // with number `first_column`.
  RowEmbedding(ParamLayout& layout, EmbeddingKind kind, const IdField& field, int first_column, int id_columns,
               int width, int batch_size);

  // Its part of the arena.
  Range room() const { return room_; }
  std::size_t index() const { return index_; }  // of the tensor in the layout

  void initialize(std::uint64_t seed, std::span<float> weights) const;

  // From now on it is about a batch with these ids, (batch, id columns). Returns the rows that they ask for.
  RowKeys touch(std::span<const int> ids);
  // Writes the rows of the batch's ids, out of an arena, to where the ids stand in (batch, id columns, width); and the
  // other way round the sum of `gradients` of the same form by row into an arena.
  void gather(In weights, Out rows) const;
  void scatter(In gradients, Out arena_gradients) const;

 private:
  // Of the row that is the `place`-th of the batch, the first element in the arena.
  std::size_t begin_of(std::size_t place) const;

  EmbeddingKind kind_;
  std::size_t width_, rows_;
  std::size_t index_ = 0;
  Range room_;
  std::vector<int> ids_;                  // (batch, columns)
  std::vector<std::uint32_t> positions_;  // of each of them in (batch, id columns)
  RowLookup lookup_;
};

}  // namespace syncopate::worker

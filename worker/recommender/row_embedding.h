// RowEmbedding: a table from which each id of a batch selects a row. It lies in the host's memory.
//
// If sparse, it is a row-sparse table of the layout (common/param_layout.h), and the arena holds only the rows of one
// batch. If dense, it is an ordinary tensor, whose gradient is zero in rows that no id selects. Both begin with the
// same values, and sum the gradients of a row in the same order: that of the ids in the batch.
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

  // Appends its tensor, named after the field, to the layout. A sample has `id_columns` ids; the field's ids begin at
  // number `first_column`.
  RowEmbedding(ParamLayout& layout, EmbeddingKind kind, const IdField& field, int first_column, int id_columns,
               int width, int batch_size);

  // Its range in the arena.
  Range room() const { return room_; }
  std::size_t index() const { return index_; }  // of its tensor in the layout

  void initialize(std::uint64_t seed, std::span<float> weights) const;

  // From now on the functions below apply to a batch with these ids, (batch, id columns). Returns the rows that the ids
  // select.
  RowKeys touch(std::span<const int> ids);
  // gather writes the rows of the batch's ids from an arena to (batch, id columns, width). scatter adds up `gradients`,
  // of the same form, by row into an arena.
  void gather(ConstFloats weights, Floats rows) const;
  void scatter(ConstFloats gradients, Floats arena_gradients) const;

 private:
  // Where the row at `place` of the batch's rows begins in the arena.
  std::size_t begin_of(std::size_t place) const;

  EmbeddingKind kind_;
  std::size_t width_, rows_;
  std::size_t index_ = 0;
  Range room_;
  std::vector<int> ids_;                  // (batch, columns)
  std::vector<std::uint32_t> positions_;  // of each id in (batch, id columns)
  RowLookup lookup_;
};

}  // namespace syncopate::worker

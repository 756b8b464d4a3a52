#include "worker/recommender/row_embedding.h"

#include <algorithm>

#include "common/tables/initial_row.h"

namespace syncopate::worker {

RowEmbedding::RowEmbedding(ParamLayout& layout, EmbeddingKind kind, const IdField& field, int first_column,
                           int id_columns, int width, int batch_size)
    : kind_(kind), width_(static_cast<std::size_t>(width)), rows_(static_cast<std::size_t>(field.range)) {
  for (int sample = 0; sample < batch_size; ++sample) {
    for (int column = 0; column < field.columns; ++column) {
      positions_.push_back(static_cast<std::uint32_t>(sample * id_columns + first_column + column));
    }
  }
  ids_.resize(positions_.size());
  const std::int64_t most = std::min(field.range, static_cast<std::int64_t>(ids_.size()));
  index_ = kind == EmbeddingKind::kSparse
               ? layout.add_table(field.name, field.range, width, {.rows_a_step = most, .limit = kInitialLimit})
               : layout.add(field.name, {field.range, width});
  room_ = layout.tensors()[index_].range;
}

void RowEmbedding::initialize(std::uint64_t seed, std::span<float> weights) const {
  if (kind_ == EmbeddingKind::kSparse) return;  // rows are made when they are first touched
  for (std::size_t row = 0; row < rows_; ++row) {
    initial_row(seed, index_, static_cast<RowKey>(row), kInitialLimit,
                weights.subspan(room_.begin + row * width_, width_));
  }
}

RowKeys RowEmbedding::touch(std::span<const int> ids) {
  for (std::size_t i = 0; i < ids_.size(); ++i) ids_[i] = ids[positions_[i]];
  lookup_.set(ids_);
  return lookup_.keys();
}

std::size_t RowEmbedding::begin_of(std::size_t place) const {
  return room_.begin + (kind_ == EmbeddingKind::kSparse ? place : lookup_.keys()[place]) * width_;
}

void RowEmbedding::gather(ConstFloats weights, Floats rows) const {
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    std::ranges::copy(weights.subspan(begin_of(lookup_.places()[i]), width_),
                      rows.subspan(positions_[i] * width_).begin());
  }
}

void RowEmbedding::scatter(ConstFloats gradients, Floats arena_gradients) const {
  if (kind_ == EmbeddingKind::kDense) std::ranges::fill(slice(arena_gradients, room_), 0.0f);
  for (std::size_t place = 0; place < lookup_.keys().size(); ++place) {
    float* __restrict const sum = arena_gradients.data() + begin_of(place);
    const std::span<const std::uint32_t> askers = lookup_.askers(place);
    std::ranges::copy(gradients.subspan(positions_[askers.front()] * width_, width_), sum);
    for (const std::uint32_t asker : askers.subspan(1)) {
      const float* __restrict const gradient = gradients.data() + positions_[asker] * width_;
      for (std::size_t i = 0; i < width_; ++i) sum[i] += gradient[i];
    }
  }
}

}  // namespace syncopate::worker

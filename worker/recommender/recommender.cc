#include "worker/recommender/recommender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <utility>

namespace syncopate::worker {
namespace {

// Returns the part of one sample, in a tensor that has `each` floats a sample.
template <typename T>
std::span<T> part(std::span<T> tensor, std::size_t sample, std::size_t each) {
  return tensor.subspan(sample * each, each);
}

}  // namespace

LossAndCorrect sigmoid_cross_entropy(ConstFloats logits, std::span<const int> labels, Floats dlogits) {
  assert(logits.size() == labels.size() && dlogits.size() == labels.size());
  const auto batch = static_cast<double>(labels.size());
  LossAndCorrect result;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double logit = logits[i], label = labels[i];
    const double small = std::exp(-std::abs(logit));  // of the less likely class against the other
    const double probability = (logit > 0 ? 1 : small) / (1 + small);
    result.loss += std::max(logit, 0.0) - label * logit + std::log1p(small);
    result.correct += (logit > 0) == (labels[i] == 1) ? 1 : 0;
    dlogits[i] = static_cast<float>((probability - label) / batch);
  }
  result.loss /= batch;
  return result;
}

Recommender::Recommender(const RecommenderShape& shape, const SampleForm& form, const Widths& widths,
                         ComputeBackend& backend)
    : shape_(shape),
      values_(static_cast<std::size_t>(form.values())),
      beside_(static_cast<std::size_t>(widths.beside_tower)),
      backend_(backend),
      scratch_(backend) {
  int column = 0;
  for (const IdField& field : form.ids) {
    tables_.emplace_back(layout_, shape.kind, field, column, form.id_columns(), widths.row, shape.batch_size);
    column += field.columns;
  }
  Layers tower;
  int width = widths.tower_input;
  for (const int out : widths.tower) {
    tower.push_back(std::make_unique<Dense>(backend, DenseShape{shape.batch_size, width, out, true},
                                            fmt::format("dense{}", tower.size() + 1), Initialization::kHeUniform,
                                            layout_));
    width = out;
  }
  tower_.emplace(backend, std::move(tower), shape.batch_size, scratch_);
  const int head_input = widths.beside_tower + widths.tower.back();
  head_.emplace(backend, DenseShape{shape.batch_size, head_input, 1}, "head", Initialization::kLeCunUniform, layout_);
  rows_ = activation(form.id_columns() * widths.row);
  tower_input_ = activation(widths.tower_input);
  tower_output_ = activation(widths.tower.back());
  head_input_ = activation(head_input);
  extra_logit_ = activation(1);
  logit_ = activation(1);
}

Recommender::Activation Recommender::activation(int each) {
  const auto size = static_cast<std::size_t>(each);
  const std::size_t all = size * static_cast<std::size_t>(shape_.batch_size);
  return {size, backend_.allocate_floats(all), backend_.allocate_floats(all)};
}

void Recommender::initialize(std::uint64_t seed, std::span<float> weights) const {
  for (const RowEmbedding& table : tables_) table.initialize(seed, weights);
  tower_->initialize(seed, weights);
  head_->initialize(seed, weights);
}

std::span<const RowKeys> Recommender::touched_rows(const BatchView& batch) {
  if (shape_.kind == EmbeddingKind::kDense) return {};
  touched_.clear();
  for (RowEmbedding& table : tables_) touched_.push_back(table.touch(batch.ids));
  return touched_;
}

void Recommender::before_reading(std::function<void(Range)> before) {
  tower_->before_reading(before);
  before_reading_ = std::move(before);
}

void Recommender::forward(In weights, const BatchView& batch) {
  assert(batch.labels.size() == static_cast<std::size_t>(shape_.batch_size));
  for (RowEmbedding& table : tables_) {
    if (shape_.kind == EmbeddingKind::kDense) table.touch(batch.ids);
    if (before_reading_) before_reading_(table.room());
    table.gather(weights, rows_.values);
  }
  combine_all(batch.values);
  tower_->forward(weights, {tower_input_.values, tower_output_.values});
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    std::ranges::copy(part(tower_output_.values, i, tower_output_.each),
                      part(head_input_.values, i, head_input_.each).subspan(beside_).begin());
  }
  if (before_reading_) before_reading_(head_->params());
  head_->forward(weights, {head_input_.values, logit_.values});
  for (std::size_t i = 0; i < batch.labels.size(); ++i) logit_.values[i] += extra_logit_.values[i];
  loss_ = sigmoid_cross_entropy(logit_.values, batch.labels, logit_.gradients);
}

void Recommender::backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) {
  if (before_reading_) before_reading_(head_->params());
  head_->backward(weights, {head_input_.values, logit_.values}, {logit_.gradients, head_input_.gradients}, gradients,
                  tensor_ready);
  for (std::size_t i = 0; i < logit_.values.size(); ++i) {
    std::ranges::copy(part(head_input_.gradients, i, head_input_.each).subspan(beside_),
                      part(tower_output_.gradients, i, tower_output_.each).begin());
  }
  tower_->backward(weights, {tower_input_.values, tower_output_.values},
                   {tower_output_.gradients, tower_input_.gradients}, gradients, tensor_ready);
  separate_all();
  for (std::size_t i = tables_.size(); i-- > 0;) {
    tables_[i].scatter(rows_.gradients, gradients);
    tensor_ready(tables_[i].index());
  }
}

void Recommender::combine_all(ConstFloats values) {
  for (std::size_t i = 0; i < logit_.values.size(); ++i) {
    combine(part(values, i, values_), part(ConstFloats(rows_.values), i, rows_.each),
            {part(tower_input_.values, i, tower_input_.each),
             part(head_input_.values, i, head_input_.each).first(beside_), extra_logit_.values[i]});
  }
}

void Recommender::separate_all() {
  for (std::size_t i = 0; i < logit_.values.size(); ++i) {
    separate(part(ConstFloats(rows_.values), i, rows_.each),
             {part(tower_input_.gradients, i, tower_input_.each),
              part(head_input_.gradients, i, head_input_.each).first(beside_), logit_.gradients[i]},
             part(rows_.gradients, i, rows_.each));
  }
}

}  // namespace syncopate::worker

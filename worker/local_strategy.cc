#include "worker/local_strategy.h"

#include <cassert>

#include "common/left_out_step.h"

namespace syncopate::worker {

Result<ParamArenas> LocalStrategy::allocate(const ParamLayout& layout) {
  layout_ = layout;
  weights_ = AlignedBuffer(layout.size());
  gradients_ = AlignedBuffer(layout.size());
  optimizer_ = Optimizer(optimizer_.config(), layout, layout.dense());
  state_.emplace(optimizer_.config(), layout.dense().size());
  tables_ = row_tables_of(layout, seed_, optimizer_.config());
  return ParamArenas{weights_.span(), gradients_.span()};
}

Status LocalStrategy::restore(const TrainingState& state) {
  const Range dense = layout_.dense();
  SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::kWeights, dense, slice(weights_.span(), dense)));
  SYNCOPATE_RETURN_IF_ERROR(state_->restore({0, dense.size()}, dense.begin, state));
  for (const auto& [table, rows] : state.rows) {
    if (table < tables_.size()) SYNCOPATE_RETURN_IF_ERROR(tables_[table].restore(rows));
  }
  first_step_ = steps_done_ = state.step;
  return Status();
}

Status LocalStrategy::save(TrainingState& state) const {
  const Range dense = layout_.dense();
  state.step = steps_done_;
  state.put(state_part::kWeights, dense.begin, slice(weights_.span(), dense));
  state_->save({0, dense.size()}, dense.begin, state);
  for (std::size_t table = 0; table < tables_.size(); ++table) tables_[table].save(state.rows[table]);
  return Status();
}

Result<std::vector<Range>> LocalStrategy::join() { return std::vector<Range>{{0, weights_.size()}}; }

void LocalStrategy::begin_step(const StepContext& step) {
  assert(step.rows.size() == tables_.size());
  step_ = step;
  for (std::size_t table = 0; table < tables_.size() && rows_.ok(); ++table) {
    const RowKeys keys = step.rows[table];
    rows_ = tables_[table].read(keys, slice(weights_.span(), layout_.tables()[table].room_of(keys.size())));
  }
}

Result<SyncStats> LocalStrategy::finish_step() {
  SYNCOPATE_RETURN_IF_ERROR(rows_);
  if (leaves_out_ && is_left_out(gradients_.span())) {
    steps_done_ = step_.step + 1;
    return SyncStats();
  }
  const TimePoint begin = clock_.now();
  const TraceSpan span(tracer_, {.kind = TraceKind::kUpdate, .number = step_.step});
  const UpdateStep update{step_.learning_rate, 1.0f, step_.update + 1};
  const Range dense = layout_.dense();
  optimizer_.apply(slice(weights_.span(), dense), slice(gradients_.span(), dense), *state_, 0, update);
  clock_.processed(Processing::kUpdate, dense.size() * sizeof(float));
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    const RowKeys keys = step_.rows[table];
    const std::span<const float> gradients = slice(gradients_.span(), layout_.tables()[table].room_of(keys.size()));
    SYNCOPATE_RETURN_IF_ERROR(tables_[table].update(keys, gradients, update));
  }
  SyncStats stats;
  stats.optimizer = clock_.now() - begin;
  steps_done_ = step_.step + 1;
  report_weights(dense);
  return stats;
}

Status LocalStrategy::read_rows(std::size_t table, RowKeys keys, std::span<float> values) {
  tables_[table].peek(keys, values);
  return Status();
}

}  // namespace syncopate::worker

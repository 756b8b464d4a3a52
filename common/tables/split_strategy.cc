#include "common/tables/split_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate {

SplitStrategy::SplitStrategy(std::unique_ptr<SyncStrategy> dense, std::unique_ptr<SyncStrategy> tables)
    : dense_(std::move(dense)), tables_(std::move(tables)) {
  dense_->on_weights([this](Range range) { report_weights(range); });
}

Resumable* SplitStrategy::resumable() {
  return dense_->resumable() != nullptr && tables_->resumable() != nullptr ? this : nullptr;
}

Result<ParamArenas> SplitStrategy::allocate(const ParamLayout& layout) {
  if (layout.tables().empty() || layout.dense().size() == 0) {
    return Status::invalid_argument(
        fmt::format("a layout with {} row-sparse tables and {} dense numbers: must have both", layout.tables().size(),
                    layout.dense().size()));
  }
  rooms_ = {0, layout.dense().begin};
  SYNCOPATE_ASSIGN_OR_RETURN(arenas_, dense_->allocate(layout.without_tables()));
  SYNCOPATE_ASSIGN_OR_RETURN(of_tables_, tables_->allocate(layout.only_tables()));
  return arenas_;
}

Status SplitStrategy::restore(const TrainingState& state) {
  SYNCOPATE_RETURN_IF_ERROR(dense_->resumable()->restore(state));
  return tables_->resumable()->restore(state);
}

Result<std::vector<Range>> SplitStrategy::join() {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<Range> buckets, dense_->join());
  SYNCOPATE_ASSIGN_OR_RETURN(table_buckets_, tables_->join());
  if (dense_->first_step() != tables_->first_step()) {
    return Status::data_loss(fmt::format("the dense tensors go on with step {}, the tables with step {}",
                                         dense_->first_step(), tables_->first_step()));
  }
  dense_buckets_ = buckets.size();
  buckets.insert(buckets.end(), table_buckets_.begin(), table_buckets_.end());
  return buckets;
}

void SplitStrategy::begin_step(const StepContext& step) {
  StepContext of_dense = step;
  of_dense.rows = {};
  dense_->begin_step(of_dense);
  tables_->begin_step(step);
}

void SplitStrategy::gradient_ready(std::size_t bucket) {
  if (bucket < dense_buckets_) return dense_->gradient_ready(bucket);
  const Range room = table_buckets_[bucket - dense_buckets_];
  std::ranges::copy(slice(arenas_.gradients, room), slice(of_tables_.gradients, room).begin());
  tables_->gradient_ready(bucket - dense_buckets_);
}

void SplitStrategy::gradients_complete() {
  dense_->gradients_complete();
  tables_->gradients_complete();
}

Result<SyncStats> SplitStrategy::finish_step() {
  SYNCOPATE_ASSIGN_OR_RETURN(SyncStats stats, dense_->finish_step());
  SYNCOPATE_ASSIGN_OR_RETURN(const SyncStats of_tables, tables_->finish_step());
  for (Duration SyncStats::*const time :
       {&SyncStats::exposed_wait, &SyncStats::forward_wait, &SyncStats::backward_wait, &SyncStats::optimizer,
        &SyncStats::codec, &SyncStats::backward_codec, &SyncStats::copy}) {
    stats.*time += of_tables.*time;
  }
  stats.communication = std::max(stats.communication, of_tables.communication);
  stats.bytes_out += of_tables.bytes_out;
  stats.bytes_in += of_tables.bytes_in;
  stats.last_shard = of_tables.last_shard;
  stats.last_shard_alone = of_tables.last_shard_alone;
  return stats;
}

Status SplitStrategy::weights_needed(Range range) {
  const Range of_tables{range.begin, std::min(range.end, rooms_.end)};
  const Range of_dense{std::max(range.begin, rooms_.end), range.end};
  if (of_dense.begin < of_dense.end) SYNCOPATE_RETURN_IF_ERROR(dense_->weights_needed(of_dense));
  if (of_tables.begin >= of_tables.end) return Status();
  SYNCOPATE_RETURN_IF_ERROR(tables_->weights_needed(of_tables));
  std::ranges::copy(slice(of_tables_.weights, of_tables), slice(arenas_.weights, of_tables).begin());
  report_weights(of_tables);
  return Status();
}

Status SplitStrategy::leave() {
  SYNCOPATE_RETURN_IF_ERROR(dense_->leave());
  return tables_->leave();
}

Status SplitStrategy::save(TrainingState& state) const {
  SYNCOPATE_RETURN_IF_ERROR(dense_->resumable()->save(state));
  return tables_->resumable()->save(state);
}

}  // namespace syncopate

#include "common/tables/split_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate {

SplitStrategy::SplitStrategy(std::unique_ptr<SyncStrategy> workers, std::unique_ptr<SyncStrategy> servers,
                             Choose choose)
    : choose_(std::move(choose)) {
  parts_[kWorkers].strategy = std::move(workers);
  parts_[kServers].strategy = std::move(servers);
}

template <typename Each>
Status SplitStrategy::in_turn(const Each& each) {
  for (Part* const part : {&parts_[main_], &parts_[1 - main_]}) {
    if (trains(*part)) SYNCOPATE_RETURN_IF_ERROR(each(*part));
  }
  return {};
}

Resumable* SplitStrategy::resumable() {
  const Status all = in_turn([](Part& part) {
    return part.strategy->resumable() != nullptr ? Status() : Status::invalid_argument("cannot be resumed");
  });
  return all.ok() ? this : nullptr;
}

Result<ParamArenas> SplitStrategy::allocate(const ParamLayout& layout) {
  const std::size_t tables = layout.tables().size();
  if (tables == 0 || layout.dense().size() == 0) {
    return Status::invalid_argument(fmt::format(
        "a layout with {} row-sparse tables and {} dense numbers: must have both", tables, layout.dense().size()));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const ExchangeChoice choice, choose_(layout));
  main_ = choice.dense_by_servers ? kServers : kWorkers;
  for (const std::size_t part : {kWorkers, kServers}) {
    std::vector<bool> has(tables);
    for (std::size_t table = 0; table < tables; ++table) {
      has[table] = choice.tables_by_servers[table] == (part == kServers);
      if (has[table]) parts_[part].tables.push_back(table);
    }
    parts_[part].layout = layout.selection(has, part == main_);
  }
  places_.resize(tables);
  for (const std::size_t part : {kWorkers, kServers}) {
    const std::vector<std::size_t>& own = parts_[part].tables;
    for (std::size_t place = 0; place < own.size(); ++place) places_[own[place]] = {part, place};
  }
  main().strategy->on_weights([this](Range range) { report_weights(range); });
  for (Part& part : parts_) {
    if (!has_members(part)) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(part.arenas, part.strategy->allocate(part.layout));
  }
  return main().arenas;
}

Status SplitStrategy::restore(const TrainingState& state) {
  return in_turn([&](Part& part) { return part.strategy->resumable()->restore(state); });
}

Result<std::vector<Range>> SplitStrategy::join() {
  buckets_.clear();
  for (const std::size_t part : {kWorkers, kServers}) {
    if (!has_members(parts_[part])) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Range> own, parts_[part].strategy->join());
    for (std::size_t bucket = 0; bucket < own.size(); ++bucket) buckets_.push_back({own[bucket], part, bucket});
  }
  std::ranges::stable_sort(buckets_, std::greater(), [](const Bucket& bucket) { return bucket.range.begin; });
  const std::int64_t dense = main().strategy->first_step();
  SYNCOPATE_RETURN_IF_ERROR(in_turn([&](Part& part) {
    if (part.strategy->first_step() == dense) return Status();
    return Status::data_loss(fmt::format("the dense tensors go on with step {}, the tables with step {}", dense,
                                         part.strategy->first_step()));
  }));
  std::vector<Range> ranges;
  for (const Bucket& bucket : buckets_) ranges.push_back(bucket.range);
  return ranges;
}

void SplitStrategy::begin_step(const StepContext& step) {
  (void)in_turn([&](Part& part) {
    part.rows.clear();
    for (const std::size_t table : part.tables) part.rows.push_back(step.rows[table]);
    StepContext own = step;
    own.rows = part.rows;
    part.strategy->begin_step(own);
    return Status();
  });
}

void SplitStrategy::gradient_ready(std::size_t bucket) {
  const Bucket& ready = buckets_[bucket];
  Part& part = parts_[ready.part];
  if (ready.part != main_) {
    std::ranges::copy(slice(main().arenas.gradients, ready.range), slice(part.arenas.gradients, ready.range).begin());
  }
  part.strategy->gradient_ready(ready.bucket);
}

void SplitStrategy::gradients_complete() {
  (void)in_turn([](Part& part) {
    part.strategy->gradients_complete();
    return Status();
  });
}

Result<SyncStats> SplitStrategy::finish_step() {
  SyncStats stats;
  SYNCOPATE_RETURN_IF_ERROR(in_turn([&](Part& part) {
    SYNCOPATE_ASSIGN_OR_RETURN(const SyncStats own, part.strategy->finish_step());
    for (Duration SyncStats::*const time :
         {&SyncStats::exposed_wait, &SyncStats::forward_wait, &SyncStats::backward_wait, &SyncStats::optimizer,
          &SyncStats::pass_core_wait, &SyncStats::codec, &SyncStats::backward_codec, &SyncStats::copy}) {
      stats.*time += own.*time;
    }
    stats.communication = std::max(stats.communication, own.communication);
    stats.bytes_out += own.bytes_out;
    stats.bytes_in += own.bytes_in;
    if (&part == &parts_[kServers]) {
      stats.last_shard = own.last_shard;
      stats.last_shard_alone = own.last_shard_alone;
    }
    return Status();
  }));
  return stats;
}

Status SplitStrategy::weights_needed(Range range) {
  SYNCOPATE_RETURN_IF_ERROR(main().strategy->weights_needed(range));
  Part& other = parts_[1 - main_];
  for (const TensorSpec& table : other.layout.tensors()) {
    const Range room = table.padded();
    if (!overlap(room, range)) continue;
    SYNCOPATE_RETURN_IF_ERROR(other.strategy->weights_needed(room));
    std::ranges::copy(slice(other.arenas.weights, room), slice(main().arenas.weights, room).begin());
    report_weights(room);
  }
  return {};
}

Status SplitStrategy::leave() {
  for (Part& part : parts_) {
    if (has_members(part)) SYNCOPATE_RETURN_IF_ERROR(part.strategy->leave());
  }
  return {};
}

Status SplitStrategy::save(TrainingState& state) const {
  for (const Part& part : parts_) {
    if (trains(part)) SYNCOPATE_RETURN_IF_ERROR(part.strategy->resumable()->save(state));
  }
  return {};
}

Status SplitStrategy::read_rows(std::size_t table, RowKeys keys, std::span<float> values) {
  const Place place = places_[table];
  return parts_[place.part].strategy->table_reader()->read_rows(place.table, keys, values);
}

Result<std::vector<RowKey>> SplitStrategy::touched_rows(std::size_t table) {
  const Place place = places_[table];
  return parts_[place.part].strategy->table_reader()->touched_rows(place.table);
}

}  // namespace syncopate

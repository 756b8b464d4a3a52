#include "allreduce/strategy/device_allreduce_strategy.h"

#include <fmt/format.h>

#include "common/device/device_state.h"
#include "common/optimizer/decay_parts.h"

namespace syncopate::allreduce {

Result<ParamArenas> DeviceAllReduceStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  layout_ = layout;
  for (std::span<float>* arena : {&arenas_.weights, &arenas_.gradients}) {
    SYNCOPATE_ASSIGN_OR_RETURN(*arena, allocate_floats(device_, layout.size()));
  }
  if (options_.optimizer.weight_decay != 0 && !options_.optimizer.decay_all) undecayed_ = undecayed_ranges(layout);
  SYNCOPATE_ASSIGN_OR_RETURN(state_, allocate_state(device_, options_.optimizer.kind, layout.size()));
  return arenas_;
}

Status DeviceAllReduceStrategy::restore(const TrainingState& state) {
  first_step_ = steps_done_ = state.step;
  return restore_to_device(device_, state, arenas_.weights, state_, deadline());
}

Status DeviceAllReduceStrategy::save(TrainingState& state) const {
  state.step = steps_done_;
  return save_from_device(device_, arenas_.weights, state_, deadline(), state);
}

Result<std::vector<Range>> DeviceAllReduceStrategy::join() {
  SYNCOPATE_RETURN_IF_ERROR(prove_same_layout());
  SYNCOPATE_RETURN_IF_ERROR(prepare());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> there, device_.make_event());
  SYNCOPATE_RETURN_IF_ERROR(collective_.broadcast(arenas_.weights, 0, device_.compute()).in("join"));
  device_.compute().record(*there);
  SYNCOPATE_RETURN_IF_ERROR(collective_.wait(*there, deadline()).in("join: the initial weights"));
  std::vector<Range> ranges;
  for (const Bucket& bucket : buckets_) ranges.push_back(bucket.range);
  return ranges;
}

Status DeviceAllReduceStrategy::prove_same_layout() {
  const std::string own = fmt::format("{:016x}", layout_.hash());
  const Result<std::vector<std::string>> all =
      rendezvous_.exchange("layout", collective_.rank(), collective_.size(), own, deadline());
  if (!all.ok()) return all.status().in("join");
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    if ((*all)[rank] == own) continue;
    return Status::invalid_argument(
        fmt::format("rank {} has layout {}, rank {} has {}: all replicas must train the same model", rank, (*all)[rank],
                    collective_.rank(), own));
  }
  return {};
}

Status DeviceAllReduceStrategy::prepare() {
  SYNCOPATE_ASSIGN_OR_RETURN(communication_, device_.make_stream());
  for (const Range& range : buckets_in_backward_order(layout_, options_.bucket_bytes)) {
    Bucket& bucket = buckets_.emplace_back(Bucket{.range = range});
    for (std::unique_ptr<Event>* event :
         {&bucket.ready, &bucket.begin, &bucket.reduced, &bucket.update_begin, &bucket.update_end}) {
      SYNCOPATE_ASSIGN_OR_RETURN(*event, device_.make_event());
    }
  }
  return {};
}

void DeviceAllReduceStrategy::gradient_ready(std::size_t index) {
  const Bucket& bucket = buckets_[index];
  device_.compute().record(*bucket.ready);
  if (options_.overlap) reduce(index, *bucket.ready);
}

void DeviceAllReduceStrategy::reduce(std::size_t index, const Event& gradients) {
  if (!failure_.ok()) return;
  const Bucket& bucket = buckets_[index];
  communication_->wait_for(gradients);
  communication_->record(*bucket.begin);
  failure_ = collective_.all_reduce_mean(slice(arenas_.gradients, bucket.range), *communication_)
                 .in(fmt::format("step {}, bucket {}", step_.step, index));
  communication_->record(*bucket.reduced);
}

Result<SyncStats> DeviceAllReduceStrategy::finish_step() {
  if (!options_.overlap) {
    for (std::size_t index = 0; index < buckets_.size(); ++index) reduce(index, *buckets_.back().ready);
  }
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  const UpdateStep update{step_.learning_rate, 1.0f, step_.step + 1};
  Stream& compute = device_.compute();
  for (const Bucket& bucket : buckets_) {
    compute.wait_for(*bucket.reduced);
    compute.record(*bucket.update_begin);
    update_range(compute, options_.optimizer, undecayed_, bucket.range, arenas_.weights, arenas_.gradients, state_,
                 update);
    compute.record(*bucket.update_end);
  }
  SYNCOPATE_RETURN_IF_ERROR(
      collective_.wait(*buckets_.back().update_end, deadline()).in(fmt::format("step {}", step_.step)));
  steps_done_ = step_.step + 1;
  return stats();
}

SyncStats DeviceAllReduceStrategy::stats() const {
  SyncStats stats;
  for (const Bucket& bucket : buckets_) {
    stats.communication += device_.between(*bucket.begin, *bucket.reduced);
    stats.optimizer += device_.between(*bucket.update_begin, *bucket.update_end);
  }
  // Backward ends where its last gradients are ready; what follows is the update and the wait for it.
  const Bucket& last = buckets_.back();
  stats.exposed_wait = std::max(Duration::zero(), device_.between(*last.ready, *last.update_end) - stats.optimizer);
  const auto size = static_cast<std::int64_t>(collective_.size());
  const auto bytes = static_cast<std::int64_t>(arenas_.gradients.size_bytes());
  stats.bytes_out = stats.bytes_in = 2 * (size - 1) * bytes / size;
  return stats;
}

}  // namespace syncopate::allreduce

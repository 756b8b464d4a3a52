#include "allreduce/strategy/device_allreduce_strategy.h"

#include <fmt/format.h>

namespace syncopate::allreduce {

Result<ParamArenas> DeviceAllReduceStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  layout_ = layout;
  return replica_.allocate(layout);
}

Status DeviceAllReduceStrategy::save(TrainingState& state) const {
  if (!failure_.ok()) return Status::invalid_argument("a step that has failed on a device cannot be undone");
  return replica_.save(state, deadline());
}

Result<std::vector<Range>> DeviceAllReduceStrategy::join() {
  SYNCOPATE_RETURN_IF_ERROR(prove_same_layout());
  SYNCOPATE_RETURN_IF_ERROR(prepare());
  unfinished_ = first_step();
  collective_.prepare(replica_.arenas().model_gradients());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> there, device_.make_event());
  SYNCOPATE_RETURN_IF_ERROR(collective_.broadcast(replica_.arenas().weights, 0, device_.compute()).in("join"));
  device_.compute().record(*there);
  SYNCOPATE_RETURN_IF_ERROR(collective_.wait(*there, deadline()).in("join: the initial weights"));
  SYNCOPATE_RETURN_IF_ERROR(replica_.begin(deadline()));
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
  for (std::unique_ptr<Event>& done : done_) {
    SYNCOPATE_ASSIGN_OR_RETURN(done, device_.make_event());
  }
  const std::size_t in_floats = options_.bucket_bytes * (sizeof(float) / size_of(options_.element));
  for (const Range& range : buckets_in_backward_order(layout_, in_floats)) {
    Bucket& bucket = buckets_.emplace_back(Bucket{.range = range});
    for (Events& events : bucket.events) {
      for (std::unique_ptr<Event>* event :
           {&events.ready, &events.begin, &events.reduced, &events.update_begin, &events.update_end}) {
        SYNCOPATE_ASSIGN_OR_RETURN(*event, device_.make_event());
      }
    }
  }
  return {};
}

void DeviceAllReduceStrategy::begin_step(const StepContext& step) {
  begun_ = step.step;
  replica_.begin_step(step);
}

void DeviceAllReduceStrategy::gradient_ready(std::size_t index) {
  const Events& events = events_of(buckets_[index]);
  device_.compute().record(*events.ready);
  if (options_.overlap) reduce(index, *events.ready);
}

void DeviceAllReduceStrategy::reduce(std::size_t index, const Event& gradients) {
  if (!failure_.ok()) return;
  const Events& events = events_of(buckets_[index]);
  communication_->wait_for(gradients);
  communication_->record(*events.begin);
  const TensorSpan buffer = slice(replica_.arenas().model_gradients(), buckets_[index].range);
  failure_ = collective_.all_reduce(std::span(&buffer, 1), reduction(), *communication_)
                 .in(fmt::format("step {}, bucket {}", begun_, index));
  communication_->record(*events.reduced);
}

// The first bucket stands for all in the statistics: the times of the others are empty.
void DeviceAllReduceStrategy::reduce_together() {
  if (!failure_.ok()) return;
  std::vector<TensorSpan> buffers;
  for (const Bucket& bucket : buckets_) buffers.push_back(slice(replica_.arenas().model_gradients(), bucket.range));
  communication_->wait_for(*events_of(buckets_.back()).ready);
  communication_->record(*events_of(buckets_.front()).begin);
  failure_ = collective_.all_reduce(buffers, reduction(), *communication_).in(fmt::format("step {}", begun_));
  for (const Bucket& bucket : buckets_) {
    if (&bucket != &buckets_.front()) communication_->record(*events_of(bucket).begin);
    communication_->record(*events_of(bucket).reduced);
  }
}

void DeviceAllReduceStrategy::gradients_complete() {
  if (!options_.overlap) reduce_together();
  if (!failure_.ok()) return;
  Stream& compute = device_.compute();
  const bool begins_together = replica_.is_loss_scaled();
  if (begins_together) {
    for (const Bucket& bucket : buckets_) compute.wait_for(*events_of(bucket).reduced);
    compute.record(*events_of(buckets_.front()).update_begin);  // the search for overflows is the update's
  }
  replica_.begin_updates();
  for (const Bucket& bucket : buckets_) {
    const Events& events = events_of(bucket);
    compute.wait_for(*events.reduced);
    if (!begins_together || &bucket != &buckets_.front()) compute.record(*events.update_begin);
    replica_.update(bucket.range);
    compute.record(*events.update_end);
  }
  replica_.end_updates();
}

void DeviceAllReduceStrategy::step_given() { device_.compute().record(*done_[turn_of(begun_)]); }

Result<SyncStats> DeviceAllReduceStrategy::finish_step() {
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  const std::size_t turn = turn_of(unfinished_);
  failure_ = collective_.wait(*done_[turn], deadline()).in(fmt::format("step {}", unfinished_));
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  ++unfinished_;
  SyncStats stats = stats_of(turn);
  replica_.finish_step(stats);
  return stats;
}

SyncStats DeviceAllReduceStrategy::stats_of(std::size_t turn) const {
  SyncStats stats;
  for (const Bucket& bucket : buckets_) {
    const Events& events = bucket.events[turn];
    stats.communication += device_.between(*events.begin, *events.reduced);
    stats.optimizer += device_.between(*events.update_begin, *events.update_end);
  }
  // Backward ends where its last gradients are ready; what follows is the update and the wait for it.
  const Events& last = buckets_.back().events[turn];
  stats.exposed_wait = std::max(Duration::zero(), device_.between(*last.ready, *last.update_end) - stats.optimizer);
  const auto size = static_cast<std::int64_t>(collective_.size());
  const auto bytes = static_cast<std::int64_t>(replica_.arenas().model_gradients().size_bytes());
  stats.bytes_out = stats.bytes_in = 2 * (size - 1) * bytes / size;
  return stats;
}

}  // namespace syncopate::allreduce

#include "common/device/staged_strategy.h"

#include <algorithm>
#include <utility>

namespace syncopate {
namespace {

std::span<std::byte> bytes_of(std::span<float> floats) { return std::as_writable_bytes(floats); }

std::size_t size_in_bytes(Range range) { return range.size() * sizeof(float); }

bool are_neighbours(Range a, Range b) { return a.end == b.begin || b.end == a.begin; }

Range joined(Range a, Range b) { return {std::min(a.begin, b.begin), std::max(a.end, b.end)}; }

}  // namespace

Result<ParamArenas> StagedStrategy::allocate(const ParamLayout& layout) {
  SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
  SYNCOPATE_ASSIGN_OR_RETURN(host_, inner_.allocate(layout));
  for (const auto& [memory, pinned] :
       {std::pair(host_.weights, &pinned_weights_), std::pair(host_.gradients, &pinned_gradients_)}) {
    SYNCOPATE_ASSIGN_OR_RETURN(*pinned, device_.pin(bytes_of(memory)));
  }
  for (std::span<float>* arena : {&arenas_.weights, &gradients_}) {
    SYNCOPATE_ASSIGN_OR_RETURN(*arena, allocate_floats(device_, layout.size()));
  }
  if (element_ == ElementType::kFloat32) {
    arenas_.gradients = gradients_;
    return arenas_;
  }
  for (TensorSpan* arena : {&arenas_.rounded_weights, &arenas_.rounded_gradients}) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, device_.allocate(layout.size() * size_of(element_)));
    *arena = {memory.data(), layout.size(), element_};
  }
  return arenas_;
}

Status StagedStrategy::make_events(std::initializer_list<std::unique_ptr<Event>*> events) {
  for (std::unique_ptr<Event>* event : events) {
    SYNCOPATE_ASSIGN_OR_RETURN(*event, device_.make_event());
  }
  return {};
}

Status StagedStrategy::prepare(const std::vector<Range>& buckets) {
  SYNCOPATE_ASSIGN_OR_RETURN(copies_, device_.make_stream());
  SYNCOPATE_RETURN_IF_ERROR(make_events({&settled_}));
  for (const Range& range : buckets) {
    const bool is_apart = buckets_.empty() || size_in_bytes(buckets_.back().range) >= least_copy_ ||
                          !are_neighbours(buckets_.back().range, range);
    if (is_apart) buckets_.push_back({.range = range});
    buckets_.back().range = joined(buckets_.back().range, range);
    buckets_.back().inner_end = static_cast<std::size_t>(&range - buckets.data()) + 1;
  }
  for (Bucket& bucket : buckets_) {
    SYNCOPATE_RETURN_IF_ERROR(make_events({&bucket.ready, &bucket.copied}));
    WeightsCopy& copy = weights_copies_.emplace_back();
    SYNCOPATE_RETURN_IF_ERROR(make_events({&copy.begin, &copy.end}));
  }
  return {};
}

Status StagedStrategy::restore(const TrainingState& state) {
  SYNCOPATE_RETURN_IF_ERROR(inner_.resumable()->restore(state));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> there, device_.make_event());
  device_.compute().copy_to_device(bytes_of(host_.weights), bytes_of(arenas_.weights));
  device_.compute().record(*there);
  return device_.wait(*there, deadline()).in("restore: weights to the device");
}

Result<std::vector<Range>> StagedStrategy::join() {
  // The chief's initial weights.
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> there, device_.make_event());
  device_.compute().copy_to_host(bytes_of(arenas_.weights), bytes_of(host_.weights));
  device_.compute().record(*there);
  SYNCOPATE_RETURN_IF_ERROR(device_.wait(*there, deadline()).in("join: weights from the device"));

  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Range> buckets, inner_.join());
  SYNCOPATE_RETURN_IF_ERROR(prepare(buckets));
  inner_.on_weights([this](Range range) { send_weights(range); });
  send_weights({0, arenas_.weights.size()});
  SYNCOPATE_RETURN_IF_ERROR(settle_weights().in("join: weights to the device"));
  std::vector<Range> ranges;
  for (const Bucket& bucket : buckets_) ranges.push_back(bucket.range);
  return ranges;
}

void StagedStrategy::begin_step(const StepContext& step) {
  handed_over_ = inner_handed_ = 0;
  inner_.begin_step(step);
}

void StagedStrategy::gradient_ready(std::size_t index) {
  const Bucket& bucket = buckets_[index];
  device_.compute().record(*bucket.ready);
  copies_->wait_for(*bucket.ready);
  if (element_ != ElementType::kFloat32) {
    copies_->convert(slice(arenas_.rounded_gradients, bucket.range), slice(gradients_, bucket.range));
  }
  copies_->copy_to_host(bytes_of(slice(gradients_, bucket.range)), bytes_of(slice(host_.gradients, bucket.range)));
  copies_->record(*bucket.copied);
  // A device that has failed reports everything as done, but nothing may be handed over.
  while (handed_over_ <= index && device_.done(*buckets_[handed_over_].copied) && device_.status().ok()) {
    hand_over(buckets_[handed_over_++]);
  }
}

void StagedStrategy::hand_over(const Bucket& bucket) {
  while (inner_handed_ < bucket.inner_end) inner_.gradient_ready(inner_handed_++);
}

// The copy stream has nothing else to do: a copy begins when its bucket is ready and the copy before it is done.
Duration StagedStrategy::time_of_copy(std::size_t index) const {
  const Bucket& bucket = buckets_[index];
  const Duration since_ready = device_.between(*bucket.ready, *bucket.copied);
  return index == 0 ? since_ready : std::min(since_ready, device_.between(*buckets_[index - 1].copied, *bucket.copied));
}

Result<SyncStats> StagedStrategy::finish_step() {
  while (handed_over_ < buckets_.size()) {
    SYNCOPATE_RETURN_IF_ERROR(device_.wait(*buckets_[handed_over_].copied, deadline()).in("gradients from the device"));
    hand_over(buckets_[handed_over_++]);
  }
  inner_.gradients_complete();
  inner_.step_given();
  Result<SyncStats> stats = inner_.finish_step();
  if (!stats.ok()) return stats;
  SYNCOPATE_RETURN_IF_ERROR(inner_.weights_needed({0, host_.weights.size()}));
  flush_weights();
  const std::size_t sent = weights_sent_;
  SYNCOPATE_RETURN_IF_ERROR(settle_weights().in("weights to the device"));
  const Duration after_backward = device_.between(*buckets_.back().ready, *settled_);
  stats->exposed_wait = std::max(Duration::zero(), after_backward - stats->optimizer);
  for (std::size_t i = 0; i < sent; ++i) {
    stats->copy += device_.between(*weights_copies_[i].begin, *weights_copies_[i].end);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) stats->copy += time_of_copy(i);
  return stats;
}

Status StagedStrategy::leave() {
  SYNCOPATE_RETURN_IF_ERROR(inner_.leave());
  return settle_weights().in("leave: weights to the device");
}

// No operation reads the weights any more when they come: the inner strategy reports them once it has been handed all
// gradients, and these are the last that backward computes.
void StagedStrategy::send_weights(Range range) {
  if (unsent_.size() > 0 && !are_neighbours(unsent_, range)) flush_weights();
  unsent_ = unsent_.size() > 0 ? joined(unsent_, range) : range;
  if (size_in_bytes(unsent_) >= least_copy_) flush_weights();
}

void StagedStrategy::flush_weights() {
  const Range range = std::exchange(unsent_, {});
  if (range.size() == 0) return;
  // More ranges than buckets: the last event is recorded anew, behind all of them.
  const WeightsCopy& copy = weights_copies_[std::min(weights_sent_, weights_copies_.size() - 1)];
  copies_->record(*copy.begin);
  copies_->copy_to_device(bytes_of(slice(host_.weights, range)), bytes_of(slice(arenas_.weights, range)));
  if (element_ != ElementType::kFloat32) {
    copies_->convert(slice(arenas_.weights, range), slice(arenas_.rounded_weights, range));
  }
  copies_->record(*copy.end);
  weights_sent_ = std::min(weights_sent_ + 1, weights_copies_.size());
}

Status StagedStrategy::settle_weights() {
  flush_weights();
  if (const std::size_t sent = std::exchange(weights_sent_, 0); sent > 0) {
    device_.compute().wait_for(*weights_copies_[sent - 1].end);
  }
  device_.compute().record(*settled_);
  return device_.wait(*settled_, deadline());
}

}  // namespace syncopate

#include "worker/staged_batches.h"

#include <utility>

namespace syncopate::worker {

Result<std::unique_ptr<StagedBatches>> StagedBatches::create(BatchSource& source, Device& device, const Clock& clock,
                                                             Duration timeout, bool by_order) {
  std::unique_ptr<StagedBatches> batches(new StagedBatches(source, device, clock, timeout, by_order));
  SYNCOPATE_RETURN_IF_ERROR(batches->prepare());
  return batches;
}

Status StagedBatches::prepare() {
  if (!source_.memory().empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(pinned_, device_.pin(source_.memory()));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(copies_, device_.make_stream());
  const BatchView first = source_.next();
  for (Slot& slot : slots_) {
    for (const auto& [memory, bytes] :
         {std::pair(&slot.values, first.values.size_bytes()), std::pair(&slot.ids, first.ids.size_bytes()),
          std::pair(&slot.labels, first.labels.size_bytes()), std::pair(&slot.targets, first.targets.size_bytes())}) {
      if (bytes == 0) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(*memory, device_.allocate(bytes));
    }
    for (std::unique_ptr<Event>* event : {&slot.copied, &slot.used}) {
      SYNCOPATE_ASSIGN_OR_RETURN(*event, device_.make_event());
    }
  }
  begin_copy(slots_[0], first);
  return device_.status();
}

BatchView StagedBatches::next() {
  Slot& slot = slots_[taken_ % 2];
  Slot& other = slots_[(taken_ + 1) % 2];
  ++taken_;
  ++step_;
  if (status_.ok() && !is_staged_) stage(slot);
  // The source's next batch may take the memory of the one whose copy was begun by the last call.
  if (status_.ok()) status_ = device_.wait(*slot.copied, clock_.now() + timeout_).in("a batch to the device");
  if (status_.ok()) {
    device_.compute().record(*other.used);
    copies_->wait_for(*other.used);
    is_staged_ = false;
    if (!by_order_ || ordered_ > 0) stage(other);
  }
  const auto whole_numbers = [](std::span<const std::byte> memory) {
    return std::span(reinterpret_cast<const int*>(memory.data()), memory.size() / sizeof(int));
  };
  const auto floats = [](std::span<const std::byte> memory) {
    return std::span(reinterpret_cast<const float*>(memory.data()), memory.size() / sizeof(float));
  };
  return {.values = floats(slot.values),
          .labels = whole_numbers(slot.labels),
          .ids = whole_numbers(slot.ids),
          .targets = floats(slot.targets),
          .costs = slot.costs};
}

// The batch whose copy was begun is not wanted: another takes its place, behind it on the copy stream.
void StagedBatches::seek(std::int64_t step) {
  if (step == step_) return;
  step_ = step;
  if (status_.ok()) status_ = device_.wait(*slots_[taken_ % 2].copied, clock_.now() + timeout_).in("seek");
  if (!status_.ok()) return;
  source_.seek(step);
  begin_copy(slots_[taken_ % 2], source_.next());
}

void StagedBatches::order(std::int64_t number) {
  source_.order(number);
  ++ordered_;
}

// The batch whose copy was begun is not wanted: another takes its place, behind it on the copy stream.
void StagedBatches::forget_orders() {
  if (status_.ok() && is_staged_) {
    status_ = device_.wait(*slots_[taken_ % 2].copied, clock_.now() + timeout_).in("forget");
  }
  is_staged_ = false;
  ordered_ = 0;
  source_.forget_orders();
}

void StagedBatches::stage(Slot& slot) {
  if (by_order_) --ordered_;
  begin_copy(slot, source_.next());
}

void StagedBatches::begin_copy(Slot& slot, const BatchView& batch) {
  if (!batch.values.empty()) copies_->copy_to_device(std::as_bytes(batch.values), slot.values);
  if (!batch.ids.empty()) copies_->copy_to_device(std::as_bytes(batch.ids), slot.ids);
  if (!batch.targets.empty()) copies_->copy_to_device(std::as_bytes(batch.targets), slot.targets);
  copies_->copy_to_device(std::as_bytes(batch.labels), slot.labels);
  slot.costs.assign(batch.costs.begin(), batch.costs.end());
  copies_->record(*slot.copied);
  is_staged_ = true;
}

}  // namespace syncopate::worker

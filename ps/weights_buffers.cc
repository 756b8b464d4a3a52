#include "ps/weights_buffers.h"

#include <cassert>

namespace syncopate::ps {

WeightsBuffers::WeightsBuffers(int workers, Allocate allocate, Settle settle)
    : allocate_(std::move(allocate)), settle_(std::move(settle)), lent_(static_cast<std::size_t>(workers), nullptr) {}

Status WeightsBuffers::create(std::size_t elements) {
  assert(buffers_.empty());
  Result<std::span<float>> memory = allocate_(elements);
  if (!memory.ok()) return memory.status();
  buffers_.emplace_back().weights = *memory;
  return Status();
}

WeightsBuffers::Loan WeightsBuffers::lend(int worker) {
  returned(worker);
  Buffer& buffer = buffers_[current_];
  ++buffer.readers;
  lent_[static_cast<std::size_t>(worker)] = &buffer;
  return {buffer.weights, &buffer.pending};
}

void WeightsBuffers::returned(int worker) {
  Buffer*& lent = lent_[static_cast<std::size_t>(worker)];
  if (lent != nullptr) --lent->readers;
  lent = nullptr;
}

Result<WeightsBuffers::Update> WeightsBuffers::begin_update() {
  const std::span<const float> from = current();
  Result<std::size_t> chosen = choose();
  if (!chosen.ok()) return chosen.status();
  if (*chosen != current_) ++copies_;
  current_ = *chosen;
  Buffer& buffer = buffers_[current_];
  // Without readers, what is left of a send is the news that it is done.
  if (!buffer.pending.none()) SYNCOPATE_RETURN_IF_ERROR(settle_(buffer.pending));
  return Update{from, buffer.weights};
}

Result<std::size_t> WeightsBuffers::choose() {
  if (is_writable(buffers_[current_])) return current_;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (is_writable(buffers_[i])) return i;
  }
  assert(buffers_.size() <= lent_.size());  // each of them is lent to another worker
  Result<std::span<float>> memory = allocate_(current().size());
  if (!memory.ok()) return memory.status();
  buffers_.emplace_back().weights = *memory;
  return buffers_.size() - 1;
}

}  // namespace syncopate::ps

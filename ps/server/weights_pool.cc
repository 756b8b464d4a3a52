#include "ps/server/weights_pool.h"

#include <algorithm>

#include "common/param_layout.h"

namespace syncopate::ps {
namespace {

// Buffers that are taken at once when a chunk needs another: memory that peers map is dear in system calls.
constexpr std::size_t kAtOnce = 4;

std::size_t aligned(std::size_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Status WeightsPool::reserve(std::size_t elements) {
  SYNCOPATE_ASSIGN_OR_RETURN(reserved_, allocate_(elements));
  return Status();
}

Result<WeightsPool::Buffer*> WeightsPool::acquire(std::size_t elements) {
  const std::size_t size = aligned(elements);
  // Not a larger one: a small chunk could keep it for good, and the large ones would need ever more.
  const auto fits = [&](const Buffer* buffer) {
    return buffer->memory.size() >= elements && buffer->memory.size() <= size && buffer->keepers == 0 &&
           buffer->pending.none();
  };
  if (const auto found = std::ranges::find_if(given_up_, fits); found != given_up_.end()) {
    Buffer* const buffer = *found;
    given_up_.erase(found);
    return buffer;
  }
  if (reserved_.size() < elements) SYNCOPATE_RETURN_IF_ERROR(reserve(kAtOnce * size));
  const std::size_t taken = std::min(size, reserved_.size());
  Buffer& buffer = buffers_.emplace_back();
  buffer.memory = reserved_.first(taken);
  reserved_ = reserved_.subspan(taken);
  return &buffer;
}

}  // namespace syncopate::ps

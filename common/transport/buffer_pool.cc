#include "common/transport/buffer_pool.h"

#include <new>

namespace syncopate {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

BufferPool::Buffer BufferPool::take(std::size_t bytes) {
  std::vector<Memory>& free = free_of(bytes);
  if (free.empty()) {
    const std::size_t whole = std::size_t{1} << size_class(bytes);
    Memory memory(static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole)));
    if (!memory) throw std::bad_alloc();
    return Buffer(*this, std::move(memory), bytes);
  }
  Memory memory = std::move(free.back());
  free.pop_back();
  return Buffer(*this, std::move(memory), bytes);
}

}  // namespace syncopate

// BufferPool: memory for received payloads. It is reused, so that a steady flow of messages allocates none. One thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace syncopate {

class BufferPool {
 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte[], Free>;

 public:
  // Memory of the pool, aligned to a cache line and not initialised. It returns to the pool when this object is
  // destroyed, which must be before the pool is.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Buffer() {
      if (memory_) pool_->free_of(bytes_).push_back(std::move(memory_));
    }

    std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }

   private:
    friend class BufferPool;
    Buffer(BufferPool& pool, Memory memory, std::size_t bytes)
        : pool_(&pool), memory_(std::move(memory)), bytes_(bytes) {}

    BufferPool* pool_ = nullptr;
    Memory memory_;
    std::size_t bytes_ = 0;
  };

  // `bytes` is at least 1. The kernel allocates pages only when they are written, so unfilled memory costs little.
  Buffer take(std::size_t bytes);

 private:
  // Buffers of one power of two serve all sizes up to it.
  static std::size_t size_class(std::size_t bytes) { return std::bit_width((bytes - 1) | (kSmallest - 1)); }
  std::vector<Memory>& free_of(std::size_t bytes) { return free_[size_class(bytes)]; }

  static constexpr std::size_t kSmallest = 4096;
  std::array<std::vector<Memory>, 65> free_;  // by class; the last used is taken first, since a cache may hold it
};

}  // namespace syncopate

#include "common/os/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

namespace syncopate {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;

// That of a SharedZeros, if there is one.
float* shared = nullptr;
std::size_t shared_size = 0;

// Smaller ones cost little, and others of their size may hold anything, such as what ranks say of themselves.
constexpr std::size_t kLeastShared = std::size_t{1} << 16;

// From here on blocks come from the kernel, and go back to it (keep_large_blocks): they take no memory where nobody
// writes to them. Smaller ones are reused, and giving their pages back would cost more than zeroing them.
constexpr std::size_t kLeastUntouched = std::size_t{33} << 20;

float* zeros(std::size_t elements) {
  const std::size_t bytes = elements * sizeof(float);
  const std::size_t alignment = bytes < kPage ? kCacheLine : kPage;
  auto* const memory =
      static_cast<float*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
  if (memory == nullptr) throw std::bad_alloc();
  // Pages of private memory that are given back read as zeros.
  const std::size_t untouched = bytes < kLeastUntouched ? 0 : bytes / kPage * kPage;
  if (untouched == 0 || madvise(memory, untouched, MADV_DONTNEED) != 0) {
    std::memset(memory, 0, bytes);
  } else {
    std::memset(reinterpret_cast<char*>(memory) + untouched, 0, bytes - untouched);
  }
  return memory;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t elements) : size_(elements) {
  if (elements == 0) return;
  data_.reset(elements == shared_size ? shared : zeros(elements));
}

void AlignedBuffer::Free::operator()(float* memory) const {
  if (memory != shared) std::free(memory);
}

SharedZeros::SharedZeros(std::size_t elements) {
  if (elements < kLeastShared) return;
  shared = zeros(elements);
  shared_size = elements;
}

bool SharedZeros::holds(const void* memory) {
  return shared != nullptr && std::less_equal<const void*>()(shared, memory) &&
         std::less<const void*>()(memory, shared + shared_size);
}

SharedZeros::~SharedZeros() {
  std::free(std::exchange(shared, nullptr));
  shared_size = 0;
}

}  // namespace syncopate

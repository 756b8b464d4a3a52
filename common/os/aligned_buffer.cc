#include "common/os/aligned_buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace syncopate {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t elements) : size_(elements) {
  if (elements == 0) return;
  const std::size_t bytes = elements * sizeof(float);
  const std::size_t alignment = bytes < kPage ? kCacheLine : kPage;
  data_.reset(static_cast<float*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)));
  if (!data_) throw std::bad_alloc();
  std::memset(data_.get(), 0, bytes);
}

void AlignedBuffer::Free::operator()(float* memory) const { std::free(memory); }

}  // namespace syncopate

#include "common/aligned_buffer.h"

#include <cstring>
#include <new>

namespace syncopate {
namespace {
constexpr std::align_val_t kCacheLine{64};
}

AlignedBuffer::AlignedBuffer(std::size_t elements) : size_(elements) {
  if (elements == 0) return;
  data_.reset(static_cast<float*>(::operator new(elements * sizeof(float), kCacheLine)));
  std::memset(data_.get(), 0, elements * sizeof(float));
}

void AlignedBuffer::Free::operator()(float* memory) const { ::operator delete(memory, kCacheLine); }

}  // namespace syncopate

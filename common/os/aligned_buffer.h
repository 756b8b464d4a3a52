// AlignedBuffer: a fixed number of floats, zeroed, beginning on a cache line. A buffer of at least a page lies on pages
// of its own, so that it can be pinned for a device. Owns its memory; it can be moved, but not copied.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace syncopate {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t elements);

  std::size_t size() const { return size_; }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> span() { return {data_.get(), size_}; }
  std::span<const float> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  std::unique_ptr<float[], Free> data_;
  std::size_t size_ = 0;
};

// SharedZeros: while it lives, all AlignedBuffers of exactly `elements`, if at least 65,536, are the same memory. It is
// for a program that writes nothing but zeros there, as the workers of a simulated cluster that have no gradients do
// into their arenas: a thousand of them then need no more memory than one. One lives at a time, as long as the
// buffers; one thread makes and destroys it and them.
class SharedZeros {
 public:
  explicit SharedZeros(std::size_t elements);
  ~SharedZeros();
  SharedZeros(const SharedZeros&) = delete;
  SharedZeros& operator=(const SharedZeros&) = delete;

  // Whether this is a part of that memory.
  static bool holds(const void* memory);
};

}  // namespace syncopate

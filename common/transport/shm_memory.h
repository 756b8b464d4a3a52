// Anonymous memory that processes of one host share: a memory file without a name (memfd_create(2)), passed as a file
// descriptor. A kill leaves nothing behind, and the size of /dev/shm does not matter.
#pragma once

#include <cstddef>
#include <span>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate {

class SharedMemory {
 public:
  // Creates zeroed memory of a fixed size. Fails with resource exhausted.
  static Result<SharedMemory> create(std::size_t bytes);
  // Maps memory that a peer has created. Only memory whose size can no longer change is accepted, since otherwise a
  // peer could make our reads fault. `writable` chooses how it is mapped. Page tables are filled at once, so that no
  // page fault falls into a measured step; or, of memory of which this process uses little, by fill().
  enum class Pages { kFilled, kUntouched };
  static Result<SharedMemory> map(FileDescriptor file, bool writable, Pages pages = Pages::kFilled);
  // Fills the page tables of writable memory from byte `begin` on, as far as `bytes` more. Does nothing where the
  // kernel refuses: the pages are then filled when they are touched.
  void fill(std::size_t begin, std::size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return {address_, size_}; }
  const FileDescriptor& file() const { return file_; }

 private:
  SharedMemory(FileDescriptor file, std::byte* address, std::size_t size)
      : file_(std::move(file)), address_(address), size_(size) {}

  FileDescriptor file_;
  std::byte* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace syncopate

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
  // peer could make our reads fault. `writable` chooses how it is mapped.
  static Result<SharedMemory> map(FileDescriptor file, bool writable);

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

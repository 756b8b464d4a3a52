#include "common/transport/shm_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/os/resource_limits.h"

namespace syncopate {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Status failure(const char* what, std::size_t bytes) {
  return Status::resource_exhausted(
      fmt::format("{} {} bytes of shared memory: {}{}", what, bytes, strerror(errno), limit_behind(errno)));
}

using Pages = SharedMemory::Pages;

std::byte* map_all(int file, std::size_t bytes, bool writable, Pages pages) {
  const int flags = MAP_SHARED | (pages == Pages::kFilled ? MAP_POPULATE : 0);
  void* address = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, flags, file, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

}  // namespace

Result<SharedMemory> SharedMemory::create(std::size_t bytes) {
  FileDescriptor file(memfd_create("syncopate", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open()) return failure("creating", bytes);
  if (fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) return failure("reserving", bytes);
  if (fcntl(file.get(), F_ADD_SEALS, kSizeSeals) != 0) return failure("sealing", bytes);
  std::byte* address = map_all(file.get(), bytes, true, Pages::kFilled);
  if (address == nullptr) return failure("mapping", bytes);
  return SharedMemory(std::move(file), address, bytes);
}

Result<SharedMemory> SharedMemory::map(FileDescriptor file, bool writable, Pages pages) {
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0 || facts.st_size <= 0) {
    return Status::data_loss("a peer's shared memory has no size");
  }
  if ((fcntl(file.get(), F_GET_SEALS) & kSizeSeals) != kSizeSeals) {
    return Status::data_loss("a peer's shared memory is not sealed: its size could change");
  }
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  std::byte* address = map_all(file.get(), bytes, writable, pages);
  if (address == nullptr) return failure("mapping a peer's", bytes);
  return SharedMemory(std::move(file), address, bytes);
}

// Maps them once more in their place, which older kernels can, too.
void SharedMemory::fill(std::size_t begin, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t first = begin / page * page, end = std::min(size_, (begin + bytes + page - 1) / page * page);
  if (first >= end) return;
  (void)mmap(address_ + first, end - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file_.get(),
             static_cast<off_t>(first));
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      address_(std::exchange(other.address_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (address_ != nullptr) munmap(address_, size_);
}

}  // namespace syncopate

#include "common/os/release_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "common/os/aligned_buffer.h"

namespace syncopate {

void release_pages(std::span<std::byte> memory) {
  if (SharedZeros::holds(memory.data())) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = (address + page - 1) / page * page, end = (address + memory.size()) / page * page;
  if (begin >= end) return;
  void* const pages = memory.data() + (begin - address);
  // The first is for files in memory, and refuses private memory, which the second is for.
  if (madvise(pages, end - begin, MADV_REMOVE) != 0) madvise(pages, end - begin, MADV_DONTNEED);
}

}  // namespace syncopate

#include "common/os/process_memory.h"

#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace syncopate {

void keep_large_blocks() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 1);  // other threads' arenas are too small for such blocks
}

std::int64_t peak_memory_bytes() {
  constexpr const char* kPeak = "VmHWM:";  // "VmHWM:     1234 kB"
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kPeak)) return std::strtoll(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace syncopate

#include "common/os/peak_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace syncopate {

std::int64_t peak_memory_bytes() {
  constexpr const char* kPeak = "VmHWM:";  // "VmHWM:     1234 kB"
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kPeak)) return std::strtoll(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace syncopate

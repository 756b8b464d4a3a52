#include "tests/support/process_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace syncopate::testing_support {
namespace {

// "Rss:     1234 kB"
std::size_t bytes_of(const std::string& line) {
  return std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024;
}

}  // namespace

std::size_t resident_bytes_of_peers() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t bytes = 0;
  bool of_peer = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with("Rss:")) {
      if (of_peer) bytes += bytes_of(line);
    } else if (const std::size_t mode = line.find(' '); mode != std::string::npos && line[mode - 1] != ':') {
      of_peer = line.compare(mode + 1, 4, "r--s") == 0;  // "ADDRESS-ADDRESS r--s ..."
    }
  }
  return bytes;
}

}  // namespace syncopate::testing_support

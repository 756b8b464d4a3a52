#include "allreduce/collective/mpi_names.h"

#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace syncopate::allreduce {

void forget_shared_memory_names() {
  constexpr const char* kBeginning = "/dev/shm/vader_segment.";
  std::vector<std::string> names;  // first all: the list is of the kernel's making, and changes as they go
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (const std::size_t at = line.find(kBeginning); at != std::string::npos) names.push_back(line.substr(at));
  }
  // What another rank has taken back already is not there any more.
  for (const std::string& name : names) unlink(name.c_str());
}

}  // namespace syncopate::allreduce

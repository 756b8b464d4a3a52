#include "experiments/cluster/process_parent.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <string>

namespace syncopate::experiments {

pid_t parent_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // "4711 (name, which may contain anything) S 4710 ..."
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos || line.size() < end_of_name + 4) return 0;
  pid_t parent = 0;
  std::from_chars(line.data() + end_of_name + 4, line.data() + line.size(), parent);
  return parent;
}

}  // namespace syncopate::experiments

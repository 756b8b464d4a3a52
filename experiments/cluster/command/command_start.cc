#include "experiments/cluster/command/command_start.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

constexpr std::string_view kStart = "--start-command";

}  // namespace

std::vector<std::string> start_line_of(const std::string& program, const std::vector<std::string>& command) {
  std::vector<std::string> line = {program, std::string(kStart)};
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

bool is_start_line(int argc, const char* const* argv) { return argc > 2 && argv[1] == kStart; }

int start_main(int, char** argv) {
  die_with_parent();
  char** const command = argv + 2;
  execvp(command[0], command);
  std::fprintf(stderr, "cannot start %s: %s\n", command[0], std::strerror(errno));
  return kNotStarted;
}

}  // namespace syncopate::experiments

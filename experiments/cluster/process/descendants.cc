#include "experiments/cluster/process/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include "common/os/process_handle.h"

namespace syncopate::experiments {
namespace {

void kill_children() {
  const pid_t self = getpid();
  std::error_code ignored;  // processes come and go meanwhile
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (parent_of(pid) == self) kill(pid, SIGKILL);
  }
}

}  // namespace

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

// The children of a child that has ended are children of this process, and are killed in the next turn.
void kill_descendants() {
  do {
    kill_children();
  } while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
}

}  // namespace syncopate::experiments

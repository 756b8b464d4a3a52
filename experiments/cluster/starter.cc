#include "experiments/cluster/starter.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "common/os/process_handle.h"
#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kStarter = "SYNCOPATE_STARTER";

// Returns 0 if none is named.
pid_t starter() {
  const char* const named = std::getenv(kStarter);
  const std::string_view text = named == nullptr ? "" : named;
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

// Also returns true for a process that is dead, but whose parent has not collected its status yet.
bool has_ended(pid_t pid) {
  const Result<ProcessHandle> process = ProcessHandle::of(pid);
  return process.ok() ? process->has_ended() : process.status().code() == Code::kNotFound;
}

}  // namespace

std::pair<std::string, std::string> named_starter(pid_t pid) { return {kStarter, std::to_string(pid)}; }

bool starter_lives() {
  const pid_t named = starter();
  return named > 0 && !has_ended(named);
}

bool starter_has_died() {
  const pid_t named = starter();
  return named > 0 && has_ended(named);
}

// A starter with several threads does not die at once: its children may already have been given to init, too late for
// the signal, while it still counts as alive.
void die_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t named = starter();
  const bool is_orphan = named > 1 && getppid() == 1;
  if (is_orphan || starter_has_died()) _exit(static_cast<int>(ExitCode::kProcessLost));
}

}  // namespace syncopate::experiments

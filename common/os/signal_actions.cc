#include "common/os/signal_actions.h"

namespace syncopate {
namespace {

// Returns what this process was started with, which nothing tells once it has been changed.
bool ignore_file_limit() {
  static const bool was_ignored = signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
  return was_ignored;
}

}  // namespace

bool is_ignored(int signal_number) {
  struct sigaction action {};
  return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void let_writes_fail() {
  signal(SIGPIPE, SIG_IGN);
  (void)ignore_file_limit();
}

sigset_t default_in_programs() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  if (!ignore_file_limit()) sigaddset(&signals, SIGXFSZ);
  return signals;
}

void take_default_actions(const sigset_t& signals) {
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    if (sigismember(&signals, number) == 1) signal(number, SIG_DFL);
  }
}

}  // namespace syncopate

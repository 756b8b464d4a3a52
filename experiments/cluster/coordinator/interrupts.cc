#include "experiments/cluster/coordinator/interrupts.h"

#include <sys/signalfd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "common/os/signal_actions.h"

namespace syncopate::experiments {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
// The value that comes with a signal that is not to be ignored ("end").
constexpr int kAsked = 0x656E64;

bool is_asked(const signalfd_siginfo& info) { return info.ssi_code == SI_QUEUE && info.ssi_int == kAsked; }

}  // namespace

Interrupts::Interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSignals) sigaddset(&signals, signal);
  std::ranges::transform(kSignals, ignored_.begin(), is_ignored);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  handle_ = FileDescriptor(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
}

Interrupts::~Interrupts() {
  while (take()) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Interrupts::take() {
  signalfd_siginfo info;
  while (read(handle_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const auto signal = static_cast<int>(info.ssi_signo);
    const auto place = static_cast<std::size_t>(std::ranges::find(kSignals, signal) - kSignals.begin());
    if (!ignored_[place] || is_asked(info)) return signal;
  }
  return std::nullopt;
}

int ask_to_end(const ProcessHandle& process, int signal) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = kAsked;
  return syscall(SYS_pidfd_send_signal, process.descriptor(), signal, &info, 0) == 0 ? 0 : errno;
}

}  // namespace syncopate::experiments

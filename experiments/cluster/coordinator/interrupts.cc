#include "experiments/cluster/coordinator/interrupts.h"

#include <sys/signalfd.h>

namespace syncopate::experiments {

Interrupts::Interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
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
  if (read(handle_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace syncopate::experiments

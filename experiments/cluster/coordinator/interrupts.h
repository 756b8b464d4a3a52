// Interrupts: Ctrl-C and requests to end, which are polled instead of handled asynchronously.
#pragma once

#include <signal.h>

#include <array>
#include <optional>

#include "common/os/file_descriptor.h"
#include "common/os/process_handle.h"

namespace syncopate::experiments {

// While this lives, SIGINT, SIGTERM and SIGHUP are blocked in this thread and in threads started from it. One that was
// ignored before stays ignored, as nohup and `&` in a script want it, unless ask_to_end() has sent it.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();

  // Returns a descriptor that is readable when a signal has arrived.
  int handle() const { return handle_.get(); }
  // Takes a signal, if one has arrived, and returns its number.
  std::optional<int> take();

 private:
  sigset_t before_;
  std::array<bool, 3> ignored_;  // by signal
  FileDescriptor handle_;
};

// Has a process that has Interrupts end as if by `signal`, whether it ignores that or not. Returns an errno; 0: it has
// been sent.
int ask_to_end(const ProcessHandle& process, int signal);

}  // namespace syncopate::experiments

// Interrupts: Ctrl-C and requests to end, which are polled instead of handled asynchronously.
#pragma once

#include <signal.h>

#include <optional>

#include "common/os/file_descriptor.h"

namespace syncopate::experiments {

// While this lives, SIGINT, SIGTERM and SIGHUP are blocked in this thread and in threads started from it.
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
  FileDescriptor handle_;
};

}  // namespace syncopate::experiments

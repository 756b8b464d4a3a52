// Interrupts: Ctrl-C and requests to end, as something to poll instead of something that strikes anywhere.
#pragma once

#include <signal.h>

#include "common/os/file_descriptor.h"

namespace syncopate::experiments {

// While it lives, SIGINT, SIGTERM and SIGHUP are blocked in this thread and in threads started from it.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();

  // Readable when one has come.
  int handle() const { return handle_.get(); }
  // Takes one, if one has come.
  bool take();

 private:
  sigset_t before_;
  FileDescriptor handle_;
};

}  // namespace syncopate::experiments

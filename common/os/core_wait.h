// How long a thread has been ready to run and had no core to run on, as Linux counts it (schedstat).
#pragma once

#include <optional>

#include "common/clock.h"
#include "common/os/file_descriptor.h"

namespace syncopate {

class CoreWait {
 public:
  // For the calling thread. Returns none where the system does not tell.
  static std::optional<CoreWait> of_this_thread();

  // Returns the time since the thread began; zero if it cannot be read any more. Any thread.
  Duration total() const;

 private:
  explicit CoreWait(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

// Returns CoreWait::total() of the calling thread; zero where the system does not tell.
Duration core_wait_of_this_thread();

}  // namespace syncopate

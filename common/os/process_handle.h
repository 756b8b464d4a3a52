// ProcessHandle: a process, held by a pidfd (pidfd_open(2)). A pid may be given to another process once its parent has
// collected its status; a handle stays that of its own.
#pragma once

#include <sys/types.h>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/os/readiness.h"
#include "common/status.h"

namespace syncopate {

class ProcessHandle {
 public:
  ProcessHandle() = default;  // of none
  // Fails with not found if there is no such process, with resource exhausted if there are no descriptors left, and
  // with internal if the kernel has no pidfds; the message is the system's reason, and the limit behind it.
  static Result<ProcessHandle> of(pid_t pid);

  bool open() const { return handle_.open(); }
  // Readable once the process has ended, though its parent may not have collected its status.
  int descriptor() const { return handle_.get(); }
  bool has_ended() const { return is_readable(descriptor()); }
  bool ends_before(TimePoint deadline) const { return ready_before(deadline, descriptor()); }
  // Returns an errno; 0: it has been sent.
  int send(int signal) const;

 private:
  explicit ProcessHandle(FileDescriptor handle) : handle_(std::move(handle)) {}

  FileDescriptor handle_;
};

// Returns which process has started another, as /proc shows it; 0 if it has no parent, or does not exist any more.
pid_t parent_of(pid_t pid);

}  // namespace syncopate

// LoopbackBinds: keeps what a process starts to the loopback interface. A socket that asks for all interfaces of the
// host, or listens without having asked for any, gets that one alone; every other bind(2) is as it was. For programs
// that cannot be told where to listen.
//
// The kernel asks this process about each bind and listen (seccomp_unotify(2)), and only then carries it out.
#pragma once

#include <utility>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate::experiments {

class LoopbackBinds {
 public:
  // From here on the calling process, which must itself bind nothing, listen nowhere and have one thread, decides for
  // all that it starts; none of these can become another user (no_new_privs). Fails with internal if the kernel cannot
  // do that.
  static Result<LoopbackBinds> begin();

  // Becomes readable once answer() has something to do.
  int handle() const { return questions_.get(); }
  // Answers one question. What cannot be looked into fails with EACCES there.
  void answer() const;

 private:
  explicit LoopbackBinds(FileDescriptor questions) : questions_(std::move(questions)) {}

  FileDescriptor questions_;
};

}  // namespace syncopate::experiments

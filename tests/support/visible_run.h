// What any user of a host sees of a run there: command lines and the kernel's lists of sockets. Nothing that a test
// knows because it has started the run.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace syncopate::testing_support {

struct VisibleRun {
  std::string id;       // --run
  std::string control;  // --rendezvous: "tcp://127.0.0.1:4711", "ipc://@name"
};

// Returns the run that this coordinator has started; none before its first process is there.
std::optional<VisibleRun> visible_run(pid_t coordinator);

// Where somebody listens: "tcp://127.0.0.1:4711", or for abstract names "ipc://@name" of a stream and
// "seqpacket://@name". In a private network, all that there are; elsewhere those of this run alone, whose processes
// then must be of the caller's user.
std::vector<std::string> listening_places(pid_t coordinator);

// Whether the process is there, and has not ended.
bool is_alive(pid_t process);

// "VmHWM", the most memory that the process has had at once, in bytes; 0 where it is gone.
std::size_t peak_memory(pid_t process);

}  // namespace syncopate::testing_support

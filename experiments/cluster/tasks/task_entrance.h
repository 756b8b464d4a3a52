// TaskEntrance: where tasks of a run and their shells are connected to. It lets in who is of this user (on one host, as
// the kernel says) or has the secret of the job's tasks (on several). Nothing here waits. One thread.
#pragma once

#include <poll.h>

#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/transport/socket_handshake.h"
#include "experiments/cluster/tasks/task_connection.h"

namespace syncopate::experiments {

class TaskEntrance {
 public:
  virtual ~TaskEntrance() = default;
  // What to poll until admit() has something to do.
  virtual void add_to(std::vector<pollfd>& items) const = 0;
  // Returns those who have been let in since the last call.
  virtual std::vector<TaskConnection> admit() = 0;
  // Whether anybody has been turned away so far.
  virtual bool has_turned_away() const = 0;
};

// `listener` listens and does not block.
std::unique_ptr<TaskEntrance> local_entrance(FileDescriptor listener);
// Who does not complete the handshake as `self` expects is turned away. Connections are lost after a `silence`
// (lose_when_silent).
std::unique_ptr<TaskEntrance> network_entrance(FileDescriptor listener, SocketHandshake::Member self, Duration silence);

}  // namespace syncopate::experiments

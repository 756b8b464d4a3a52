// TaskConnection: a connection between the coordinator's host and a task: messages of one kind each, whole and in
// order. Both ends are this program, and know that before the first message (task_entrance.h).
//
// Used by one thread. Nothing here waits, but send() until its deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/socket_stream.h"

namespace syncopate::experiments {

struct TaskMessage {
  enum class Kind : std::uint8_t {
    kHold = 1,     // from the coordinator: the task is held for a run from now on, until this connection ends
    kReport = 2,   // from a task that is held: its HostReport
    kRelease = 3,  // from the coordinator: the run is over
    kCommand = 4,  // from a shell: what to run (TaskCommand)
    kOutput = 5,   // from the task: what it has printed
    kEnd = 6,      // from the task: its exit code, as a shell says it
    kSignal = 7,   // from a shell: the number of a signal to its process
    kHere = 8,     // from a task on one of several hosts, first of all: its address
  };
  Kind kind = Kind::kHold;
  std::string bytes = {};
};

class TaskConnection {
 public:
  explicit TaskConnection(std::unique_ptr<SocketStream> stream) : stream_(std::move(stream)) {}

  // What to poll for messages.
  int descriptor() const { return stream_->descriptor(); }

  // Fails with peer lost if the other end is gone, and with deadline exceeded if it does not read.
  Status send(const TaskMessage& message, TimePoint deadline);
  // Returns the next message, or none if it has not arrived yet. Fails with peer lost at the end of the connection, and
  // with data loss if what arrives is no message.
  Result<std::optional<TaskMessage>> receive();
  // The same, and waits for it. Fails with deadline exceeded.
  Result<TaskMessage> receive_by(TimePoint deadline);

 private:
  std::unique_ptr<SocketStream> stream_;
  std::string received_;
  bool has_ended_ = false;
};

}  // namespace syncopate::experiments

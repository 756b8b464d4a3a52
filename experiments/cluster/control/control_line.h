// ControlLine: moves messages between a process's ControlChannel and the coordinator, on a thread of its own, and knows
// the process that it serves. One goes over ZeroMQ (zmq_control_line.h), another through a simulated cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <zmq.hpp>

#include "common/clock.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_channel.h"
#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {

class ControlLine {
 public:
  // The functions that the line's thread calls.
  struct Handlers {
    // Receives a message, and the weights that came with it, if any.
    std::function<void(control::FromCoordinator& message, const zmq::message_t& weights)> on_message;
    // Called after every message and every wait. Returns the latest time at which it must be called again.
    std::function<TimePoint(TimePoint now)> on_tick;
  };
  // What a process says of itself in its hello.
  struct Place {
    std::int64_t pid = 0;
    std::string host;
  };
  // What is known of the coordinator, besides its messages.
  enum class Coordinator { kUnknown, kLives, kHasDied };

  // Sends queued messages first, within the linger time.
  virtual ~ControlLine() = default;

  // Starts the thread; called once.
  virtual void open(Handlers handlers) = 0;
  // Sets how long the destructor may take to send messages that are still queued; the default is a second. Any thread.
  virtual void set_linger(Duration linger) = 0;
  // Sends what is queued, waits, for a second at most, until it has left, and ends the process. The line's thread calls
  // it.
  [[noreturn]] virtual void end_process(ExitCode code) = 0;

  virtual Place place() const = 0;
  virtual Coordinator coordinator() const = 0;
};

// Makes the line of a channel, which outlives it. May throw zmq::error_t.
using LineMaker = std::function<std::unique_ptr<ControlLine>(ControlChannel& channel)>;

}  // namespace syncopate::experiments

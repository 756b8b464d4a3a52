// ControlServer: the coordinator's end of the processes' control connections, by index in the plan. One is reached over
// ZeroMQ (zmq_control_server.h), another by the actors of a simulated cluster.
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <zmq.hpp>

#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_traffic.h"

namespace syncopate::experiments {

class ControlServer {
 public:
  struct Received {
    std::size_t process = 0;
    control::ToCoordinator message;
    zmq::message_t weights;  // empty if the message has none
  };

  virtual ~ControlServer() = default;

  // Returns the next message, if one has arrived, of a process that has said hello. Texts of the message are safe to
  // show (received_message.h).
  virtual std::optional<Received> receive() = 0;
  // Returns the number of messages that were dropped and of connections that were rejected.
  virtual std::int64_t dropped() const = 0;
  // Returns what processes on other hosts and this one have sent each other. Nothing in a simulated cluster, whose
  // control connections take no link.
  virtual ControlTraffic traffic() const { return {}; }

  // A process that has not been welcomed yet receives the message right after its welcome; a process that has ended
  // never does.
  virtual void send(std::size_t process, const control::FromCoordinator& message, zmq::message_t weights = {}) = 0;
  // Sends the first answer to a process that has said hello.
  virtual void welcome(std::size_t process, control::Welcome welcome) = 0;
};

}  // namespace syncopate::experiments

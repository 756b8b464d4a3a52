// ControlServer: the coordinator's end of the processes' control connections, by index in the plan.
//
// Used by one thread. Errors of the socket are zmq::error_t.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/transport/run_keys.h"
#include "common/transport/secure_sockets.h"
#include "experiments/control/control.pb.h"
#include "experiments/plan/job_plan.h"

namespace syncopate::experiments {

// Where the coordinator listens. With keys, nobody but who has them is heard.
struct ListenOptions {
  std::string address = "127.0.0.1";
  // Of one frame, in bytes. What is announced as longer ends the connection before memory is taken for it.
  std::int64_t largest_frame = std::int64_t{1} << 30;
  std::optional<RunKeys> keys = {};
};

class ControlServer {
 public:
  struct Received {
    std::size_t process = 0;
    control::ToCoordinator message;
    zmq::message_t weights;  // empty where the message has none
  };

  // Listens on a free port. `plan` must outlive the server.
  explicit ControlServer(const JobPlan& plan, const ListenOptions& options = {});

  // What processes connect to.
  std::string address() const { return socket_.get(zmq::sockopt::last_endpoint); }
  // To be polled for what has come in.
  zmq::pollitem_t incoming() { return {socket_.handle(), 0, ZMQ_POLLIN, 0}; }
  // The next message, if one has come. What is not from a process of the plan, is no message, or comes before the
  // process's hello, which must name this run, is dropped.
  std::optional<Received> receive();
  // Messages that were dropped, and connections that were not let in.
  std::int64_t dropped() const { return dropped_ + (doorkeeper_ ? doorkeeper_->turned_away() : 0); }

  // A process that has not been welcomed yet gets the message right after its welcome; one that is gone, never.
  void send(std::size_t process, const control::FromCoordinator& message, zmq::message_t weights = {});
  // The first answer to a process, once it has said hello. One on another host is to compare its clock with ours, which
  // is added.
  void welcome(std::size_t process, control::Welcome welcome);

  // The process is started again: what was meant for the one that is gone is not sent to it.
  void forget(std::size_t process);

 private:
  struct Outgoing {
    zmq::message_t head;
    zmq::message_t weights;
  };
  struct Line {
    std::string identity;
    bool has_clock_of_its_own = false;
    bool known = false;     // has said hello in the name of this run
    bool welcomed = false;  // before that the router does not know the process, and would drop what is meant for it
    std::vector<Outgoing> held;
  };

  // Takes all frames of one message. Nothing if it is not to be let through.
  std::optional<Received> take(const zmq::message_t& identity);
  void transmit(const Line& line, Outgoing message);

  const std::string run_id_;
  zmq::context_t context_;
  std::optional<Doorkeeper> doorkeeper_;  // with keys
  zmq::socket_t socket_;
  std::vector<Line> lines_;                         // by process
  std::map<std::string, std::size_t> by_identity_;  // process
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate::experiments

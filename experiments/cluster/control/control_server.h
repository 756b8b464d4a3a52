// ControlServer: the coordinator's end of the processes' control connections, by index in the plan.
//
// Nobody gets in but a process of this run, each with a key of its own (control_identity.h): a message is from whoever
// has proved that at the beginning of its connection. On one host it is a unix socket, which processes of other users
// cannot even connect to.
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

#include "common/transport/secure_sockets.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_identity.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// Where the coordinator listens.
struct ListenOptions {
  RunKeys keys;
  // Of this host, in the network that other hosts are in; empty where all processes are on this host.
  std::string address = {};
  // Of one frame, in bytes. What is announced as longer ends the connection before memory is taken for it.
  std::int64_t largest_frame = std::int64_t{1} << 30;
};

class ControlServer {
 public:
  struct Received {
    std::size_t process = 0;
    control::ToCoordinator message;
    zmq::message_t weights;  // empty where the message has none
  };

  // Listens at a random name, or on a free port. `plan` must outlive the server.
  ControlServer(const JobPlan& plan, const ListenOptions& options);

  // What processes connect to.
  std::string address() const { return socket_.get(zmq::sockopt::last_endpoint); }
  // To be polled for what has come in.
  zmq::pollitem_t incoming() { return {socket_.handle(), 0, ZMQ_POLLIN, 0}; }
  // The next message, if one has come. What is no message, or none that a process of this role may send, or comes
  // before the process's hello, which must name this run, is dropped. Its texts may be shown (printable_message.h).
  std::optional<Received> receive();
  // Messages that were dropped, and connections that were not let in.
  std::int64_t dropped() const { return dropped_ + authenticator_->turned_away(); }

  // A process that has not been welcomed yet gets the message right after its welcome; one that is gone, never.
  void send(std::size_t process, const control::FromCoordinator& message, zmq::message_t weights = {});
  // The first answer to a process, once it has said hello. One on another host is to compare its clock with ours, which
  // is added.
  void welcome(std::size_t process, control::Welcome welcome);

  // The process has been given up and is about to be started again: from now on it is known as the incarnation whose
  // number is returned. Nothing is heard from the one before any more, and nothing that was meant for it is sent.
  int begin_incarnation(std::size_t process);

 private:
  struct Outgoing {
    zmq::message_t head;
    zmq::message_t weights;
  };
  struct Line {
    ProcessIdentity identity;
    bool has_clock_of_its_own = false;
    bool known = false;     // has said hello in the name of this run
    bool welcomed = false;  // what is to be sent before is held
    std::string route;      // the connection that it was last heard over, as the router names it
    std::vector<Outgoing> held;
  };
  // A message as it came: its frames behind the route, as far as there is room for them.
  struct Frames {
    zmq::message_t head;
    zmq::message_t weights;
    bool fit = false;  // there is a head, and nothing behind the weights
  };

  Frames take_frames(const zmq::message_t& route);
  // What is wrong with a message from this process; empty where nothing is, and `message` is it.
  std::string objection_to(const Line& line, const Frames& frames, control::ToCoordinator& message) const;
  void admit(std::size_t process);
  void transmit(const Line& line, Outgoing message);

  const JobPlan& plan_;
  const RunKeys keys_;
  zmq::context_t context_;
  std::optional<Authenticator> authenticator_;  // of socket_, which it outlives
  zmq::socket_t socket_;
  std::vector<Line> lines_;                     // by process
  std::map<std::string, std::size_t> by_user_;  // process, by text_of() its identity
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate::experiments

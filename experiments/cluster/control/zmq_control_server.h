// ZmqControlServer: a ControlServer for processes of this and other hosts.
//
// Only processes of this run can connect, each with a key of its own (control_identity.h): a message belongs to the
// process that has proved its key at the beginning of the connection. On one host it is a unix socket, which processes
// of other users cannot even connect to.
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
#include "experiments/cluster/control/control_server.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// Where the coordinator listens.
struct ListenOptions {
  RunKeys keys;
  // Address of this host in the network of the other hosts; empty if all processes are on this host.
  std::string address = {};
  // The largest frame, in bytes. A frame announced as larger ends the connection before memory is allocated for it.
  std::int64_t largest_frame = std::int64_t{1} << 30;
};

class ZmqControlServer final : public ControlServer {
 public:
  // Listens at a random name, or on a free port. `plan` must outlive the server.
  ZmqControlServer(const JobPlan& plan, const ListenOptions& options);

  // Returns the address that processes connect to.
  std::string address() const { return socket_.get(zmq::sockopt::last_endpoint); }
  // Returns the item to poll for messages.
  zmq::pollitem_t incoming() { return {socket_.handle(), 0, ZMQ_POLLIN, 0}; }
  // Drops what is not a message, what a process of this role may not send, and what arrives before the process's hello,
  // which must name this run.
  std::optional<Received> receive() override;
  std::int64_t dropped() const override { return dropped_ + authenticator_->rejected(); }
  ControlTraffic traffic() const override { return traffic_; }

  void send(std::size_t process, const control::FromCoordinator& message, zmq::message_t weights = {}) override;
  // To a process on another host it adds the request to compare its clock with ours.
  void welcome(std::size_t process, control::Welcome welcome) override;

  // The process has been given up and is about to be restarted. From now on it is known as the incarnation whose number
  // is returned. Messages from the previous incarnation are ignored, and messages for it are not sent.
  int begin_incarnation(std::size_t process);

 private:
  struct Outgoing {
    ControlMatter matter = ControlMatter::kAllElse;
    zmq::message_t head;
    zmq::message_t weights;
  };
  struct Line {
    ProcessIdentity identity;
    bool is_remote = false;
    bool known = false;     // has said hello for this run
    bool welcomed = false;  // messages for it are held until then
    std::string route;      // the connection over which it sent its last message, as the router names it
    std::vector<Outgoing> held;
  };
  // A message as it arrived: its frames after the route, as far as there is a field for them.
  struct Frames {
    zmq::message_t head;
    zmq::message_t weights;
    bool fit = false;  // whether there is a head, and nothing after the weights
  };

  Frames take_frames(const zmq::message_t& route);
  // Returns what is wrong with a message from this process. Returns an empty text if nothing is, and sets `message`.
  std::string objection_to(const Line& line, const Frames& frames, control::ToCoordinator& message) const;
  void admit(std::size_t process);
  void transmit(const Line& line, Outgoing message);

  const JobPlan& plan_;
  const RunKeys keys_;
  zmq::context_t context_;
  std::optional<Authenticator> authenticator_;  // must outlive socket_
  zmq::socket_t socket_;
  std::vector<Line> lines_;                     // by process
  std::map<std::string, std::size_t> by_user_;  // index of the process, by text_of() its identity
  std::int64_t dropped_ = 0;
  ControlTraffic traffic_;
};

}  // namespace syncopate::experiments

// A process's end of a control connection, without the thread and the manners of a ControlClient: it says what a test
// has it say, and hears what the coordinator sends.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/transport/secure_sockets.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_identity.h"
#include "tests/support/slowness.h"

namespace syncopate::experiments {

class Peer {
 public:
  // How long it waits for anything: long, since this only ends tests that have failed.
  static constexpr std::chrono::seconds kDeadline{20 * testing_support::kSlowness};

  Peer(const std::string& address, const RunKeys& keys, const ProcessIdentity& self)
      : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(std::chrono::milliseconds(kDeadline).count()));
    secure_connector(socket_, coordinator_key(keys).public_key, control_key(keys, self));
    socket_.connect(address);
  }

  void say(const std::string& bytes) { socket_.send(zmq::buffer(bytes), zmq::send_flags::none); }
  void say(const control::ToCoordinator& message) { say(message.SerializeAsString()); }
  void say(const control::ToCoordinator& message, const std::vector<float>& weights) {
    socket_.send(zmq::buffer(message.SerializeAsString()), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(weights), zmq::send_flags::none);
  }
  // As one message.
  void say_frames(const std::vector<std::string>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const bool last = i + 1 == frames.size();
      socket_.send(zmq::buffer(frames[i]), last ? zmq::send_flags::none : zmq::send_flags::sndmore);
    }
  }
  void say_hello(const std::string& run_id) {
    control::ToCoordinator message;
    message.mutable_hello()->set_run_id(run_id);
    say(message);
  }
  void say_step(std::int64_t step) {
    control::ToCoordinator message;
    message.mutable_heartbeat()->set_step(step);
    say(message);
  }

  // The next message and the size of its weights.
  std::pair<control::FromCoordinator, std::size_t> hear() {
    zmq::message_t head, weights;
    control::FromCoordinator message;
    if (!socket_.recv(head) || !message.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
      ADD_FAILURE() << "no message came";
    }
    if (head.more()) (void)socket_.recv(weights);
    return {message, weights.size()};
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

}  // namespace syncopate::experiments

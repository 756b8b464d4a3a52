// A ControlClient and the coordinator's end of its connection, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/transport/secure_sockets.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_client.h"
#include "experiments/cluster/control/zmq_control_line.h"

namespace syncopate::experiments {

using control::FromCoordinator;
using control::ToCoordinator;

inline TimePoint soon() { return SteadyClock().now() + std::chrono::seconds(20); }

// The options of worker 0's connection to a coordinator over ZeroMQ.
inline ControlOptions options_to(const std::string& address, const RunKeys& keys) {
  return {.address = address,
          .run_id = "run-7",
          .self = {},
          .make_line = zmq_control_line(address, keys, {}),
          .threads = os_threads()};
}

struct Received {
  ToCoordinator message;
  std::vector<float> weights;
};

// The coordinator's end: a router that a test reads from and answers with. It knows worker 0 alone.
class FakeCoordinator {
 public:
  FakeCoordinator() : context_(1), socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    authenticator_.emplace(context_, coordinator_key(keys_), socket_);
    authenticator_->admit(control_key(keys_, {}).public_key, text_of(ProcessIdentity()));
    socket_.bind("tcp://127.0.0.1:*");
  }

  const RunKeys& keys() const { return keys_; }

  std::string address() const { return socket_.get(zmq::sockopt::last_endpoint); }

  // The next message of this kind from worker 0; heartbeats are answered and, unless asked for, passed over with all
  // others. Nothing once the deadline has passed.
  std::optional<Received> next(ToCoordinator::KindCase kind) {
    const TimePoint deadline = soon();
    while (SteadyClock().now() < deadline) {
      socket_.set(zmq::sockopt::rcvtimeo, 1000);
      zmq::message_t route, head, weights;
      if (!socket_.recv(route)) continue;
      route_ = route.to_string();
      Received received;
      if (!socket_.recv(head) || !received.message.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
        ADD_FAILURE() << "bytes that are no message";
      }
      if (user_of(head) != "worker-0/0") ADD_FAILURE() << "a message from " << user_of(head);
      if (head.more() && socket_.recv(weights)) {
        received.weights.resize(weights.size() / sizeof(float));
        std::memcpy(received.weights.data(), weights.data(), weights.size());
      }
      if (received.message.has_heartbeat()) {
        ++heartbeats_;
        answer([](FromCoordinator& message) { message.mutable_alive(); });
      }
      if (received.message.kind_case() == kind) return received;
    }
    ADD_FAILURE() << "no message of kind " << kind << " came";
    return std::nullopt;
  }

  // Heartbeats that next() has come by.
  int heartbeats() const { return heartbeats_; }

  // Sends what `fill` makes of an empty message.
  template <typename Fill>
  void answer(const Fill& fill, const std::vector<float>& weights = {}) {
    FromCoordinator message;
    fill(message);
    zmq::message_t head(message.SerializeAsString());
    socket_.send(zmq::buffer(route_), zmq::send_flags::sndmore);
    socket_.send(head, weights.empty() ? zmq::send_flags::none : zmq::send_flags::sndmore);
    if (weights.empty()) return;
    zmq::message_t frame(weights.data(), weights.size() * sizeof(float));
    socket_.send(frame, zmq::send_flags::none);
  }
  void welcome() {
    answer([](FromCoordinator& message) { message.mutable_welcome()->set_config_toml("mode = \"ps\"\n"); });
  }
  void stop() {
    answer([](FromCoordinator& message) { message.mutable_stop(); });
  }
  void lose(int worker) {
    answer([&](FromCoordinator& message) { message.mutable_worker_lost()->set_rank(worker); });
  }

 private:
  const RunKeys keys_ = *RunKeys::make();
  zmq::context_t context_;
  std::optional<Authenticator> authenticator_;
  zmq::socket_t socket_;
  std::string route_;  // of who was heard last
  int heartbeats_ = 0;
};

class Control : public testing::Test {
 protected:
  Control() {
    auto connecting = std::async(std::launch::async, [&] { return connect(soon()); });
    const std::optional<Received> hello = coordinator_.next(ToCoordinator::kHello);
    if (hello) hello_ = hello->message.hello();
    coordinator_.welcome();
    Result<std::unique_ptr<ControlClient>> client = connecting.get();
    EXPECT_TRUE(client.ok()) << client.status().message();
    if (client.ok()) client_ = std::move(*client);
  }

  Result<std::unique_ptr<ControlClient>> connect(TimePoint deadline) {
    return ControlClient::connect(options_to(coordinator_.address(), coordinator_.keys()), activity_, deadline);
  }

  FakeCoordinator coordinator_;
  Activity activity_;
  control::Hello hello_;
  std::unique_ptr<ControlClient> client_;
};

}  // namespace syncopate::experiments

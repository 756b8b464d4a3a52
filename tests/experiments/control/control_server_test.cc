#include "experiments/control/control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/control/control_line.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

constexpr std::chrono::seconds kDeadline{20};

JobPlan plan_of_two_workers() {
  RunConfig config;
  config.mode = Mode::kAllreduce;
  config.workers = 2;
  return make_plan(config, "run-7", "box");
}

// A process's end, without the thread and the manners of a ControlClient.
class Peer {
 public:
  Peer(const ControlServer& server, const std::string& identity) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(std::chrono::milliseconds(kDeadline).count()));
    socket_.set(zmq::sockopt::routing_id, identity);
    socket_.connect(server.address());
  }

  void say(const std::string& bytes) { socket_.send(zmq::buffer(bytes), zmq::send_flags::none); }
  void say_step(std::int64_t step) {
    ToCoordinator message;
    message.mutable_heartbeat()->set_step(step);
    say(message.SerializeAsString());
  }

  // The next message and the size of its weights.
  std::pair<FromCoordinator, std::size_t> hear() {
    zmq::message_t head, weights;
    FromCoordinator message;
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

class ControlServerTest : public testing::Test {
 protected:
  // The next message that is let through.
  std::optional<ControlServer::Received> next() {
    zmq::pollitem_t item = server_.incoming();
    const TimePoint deadline = SteadyClock().now() + kDeadline;
    while (SteadyClock().now() < deadline) {
      zmq::poll(&item, 1, std::chrono::milliseconds(100));
      if (auto received = server_.receive()) return received;
    }
    ADD_FAILURE() << "nothing came";
    return std::nullopt;
  }

  const JobPlan plan_ = plan_of_two_workers();
  ControlServer server_{plan_};
};

TEST_F(ControlServerTest, KnowsAProcessOfThePlanByItsName) {
  Peer one(server_, control_identity(Role::kWorker, 1)), evaluator(server_, control_identity(Role::kEvaluator, 0));
  one.say_step(41);
  const auto received = next();
  ASSERT_TRUE(received);
  EXPECT_EQ(plan_.processes[received->process].name(), "worker 1");
  EXPECT_EQ(received->message.heartbeat().step(), 41);
  evaluator.say_step(7);
  const auto other = next();
  ASSERT_TRUE(other);
  EXPECT_EQ(plan_.processes[other->process].name(), "evaluator");
}

TEST_F(ControlServerTest, DropsStrangersAndWhatIsNoMessage) {
  Peer stranger(server_, "worker-7"), worker(server_, control_identity(Role::kWorker, 0));
  stranger.say_step(1);
  worker.say("\xff\xff\xff");
  worker.say_step(2);
  const auto received = next();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.heartbeat().step(), 2);
  EXPECT_FALSE(server_.receive());
}

TEST_F(ControlServerTest, HoldsWhatIsSentBeforeTheWelcome) {
  FromCoordinator stop;
  stop.mutable_stop()->set_reason("early");
  const std::vector<float> weights{1, 2, 3};
  server_.send(0, stop, zmq::message_t(weights.data(), weights.size() * sizeof(float)));
  Peer worker(server_, control_identity(Role::kWorker, 0));
  worker.say_step(0);
  ASSERT_TRUE(next());
  server_.welcome(0, "mode = \"ps\"\n");
  EXPECT_EQ(worker.hear().first.welcome().config_toml(), "mode = \"ps\"\n");
  const auto [held, size] = worker.hear();
  EXPECT_EQ(held.stop().reason(), "early");
  EXPECT_EQ(size, weights.size() * sizeof(float));
}

TEST_F(ControlServerTest, IsNotHeldUpByAProcessThatIsGone) {
  {
    Peer worker(server_, control_identity(Role::kWorker, 0));
    worker.say_step(0);
    ASSERT_TRUE(next());
    server_.welcome(0, "");
  }
  FromCoordinator alive;
  alive.mutable_alive();
  for (int i = 0; i < 10; ++i) server_.send(0, alive);
}

}  // namespace
}  // namespace syncopate::experiments

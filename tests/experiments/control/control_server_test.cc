#include "experiments/control/control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/control/control_line.h"
#include "tests/experiments/control/peer.h"

namespace syncopate::experiments {
namespace {

control::Welcome welcome_with(const std::string& config_toml) {
  control::Welcome welcome;
  welcome.set_config_toml(config_toml);
  return welcome;
}

using control::FromCoordinator;
using control::ToCoordinator;

JobPlan plan_of_two_workers() {
  RunConfig config;
  config.mode = Mode::kAllreduce;
  config.workers = 2;
  return make_plan(config, "run-7", "box");
}

class ControlServerTest : public testing::Test {
 protected:
  // The next message that is let through.
  std::optional<ControlServer::Received> next() {
    zmq::pollitem_t item = server_.incoming();
    const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
    while (SteadyClock().now() < deadline) {
      zmq::poll(&item, 1, std::chrono::milliseconds(100));
      if (auto received = server_.receive()) return received;
    }
    ADD_FAILURE() << "nothing came";
    return std::nullopt;
  }

  // Says hello, which the server lets through.
  void greet(Peer& peer) {
    peer.say_hello(plan_.run_id);
    const auto received = next();
    EXPECT_TRUE(received && received->message.has_hello());
  }

  const JobPlan plan_ = plan_of_two_workers();
  ControlServer server_{plan_, {.largest_frame = 1 << 20}};
};

TEST_F(ControlServerTest, KnowsAProcessOfThePlanByItsName) {
  Peer one(server_.address(), control_identity(Role::kWorker, 1)),
      evaluator(server_.address(), control_identity(Role::kEvaluator, 0));
  greet(one), greet(evaluator);
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
  Peer stranger(server_.address(), "worker-7"), worker(server_.address(), control_identity(Role::kWorker, 0));
  greet(worker);
  stranger.say_hello(plan_.run_id);
  worker.say("\xff\xff\xff");
  worker.say_step(2);
  const auto received = next();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.heartbeat().step(), 2);
  const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
  zmq::pollitem_t item = server_.incoming();
  while (server_.dropped() < 2 && SteadyClock().now() < deadline) {
    zmq::poll(&item, 1, std::chrono::milliseconds(10));
    EXPECT_FALSE(server_.receive());
  }
  EXPECT_EQ(server_.dropped(), 2);
}

// A process that an earlier run has left behind, say.
TEST_F(ControlServerTest, HearsNobodyWhoHasNotSaidHelloInTheNameOfThisRun) {
  Peer late(server_.address(), control_identity(Role::kWorker, 0));
  late.say_step(1);
  late.say_hello("run-6");
  late.say_step(2);
  late.say_hello(plan_.run_id);
  late.say_step(3);
  EXPECT_TRUE(next()->message.has_hello());
  EXPECT_EQ(next()->message.heartbeat().step(), 3);
  EXPECT_EQ(server_.dropped(), 3);
}

TEST_F(ControlServerTest, DropsAMessageOfTooManyFramesAsAWhole) {
  Peer worker(server_.address(), control_identity(Role::kWorker, 0));
  greet(worker);
  ToCoordinator forged;
  forged.mutable_heartbeat()->set_step(1);
  // Behind a head and weights, what would be a message of another worker's if it were looked at by itself.
  worker.say_frames(
      {forged.SerializeAsString(), "weights", control_identity(Role::kWorker, 1), forged.SerializeAsString()});
  worker.say_step(2);
  const auto received = next();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.heartbeat().step(), 2);
  EXPECT_EQ(server_.dropped(), 1);
}

TEST_F(ControlServerTest, CutsOffWhoAnnouncesAFrameThatIsTooLong) {
  Peer worker(server_.address(), control_identity(Role::kWorker, 0)),
      flooding(server_.address(), control_identity(Role::kWorker, 1));
  greet(worker), greet(flooding);
  flooding.say(std::string(2 << 20, 'x'));
  worker.say_step(1);
  const auto received = next();
  ASSERT_TRUE(received);
  EXPECT_EQ(plan_.processes[received->process].name(), "worker 0");
  EXPECT_EQ(received->message.heartbeat().step(), 1);
}

TEST_F(ControlServerTest, HoldsWhatIsSentBeforeTheWelcome) {
  FromCoordinator stop;
  stop.mutable_stop()->set_reason("early");
  const std::vector<float> weights{1, 2, 3};
  server_.send(0, stop, zmq::message_t(weights.data(), weights.size() * sizeof(float)));
  Peer worker(server_.address(), control_identity(Role::kWorker, 0));
  greet(worker);
  server_.welcome(0, welcome_with("mode = \"ps\"\n"));
  EXPECT_EQ(worker.hear().first.welcome().config_toml(), "mode = \"ps\"\n");
  const auto [held, size] = worker.hear();
  EXPECT_EQ(held.stop().reason(), "early");
  EXPECT_EQ(size, weights.size() * sizeof(float));
}

// Between hosts, only who has the run's keys is heard.
TEST(SecuredControlServer, HearsThoseWhoHaveTheRunsKeysAlone) {
  const JobPlan plan = plan_of_two_workers();
  const RunKeys keys = *RunKeys::make();
  ControlServer server(plan, {.keys = keys});
  Peer plain(server.address(), control_identity(Role::kWorker, 0));
  Peer of_another_run(server.address(), control_identity(Role::kWorker, 0), *RunKeys::make());
  plain.say_hello(plan.run_id);
  of_another_run.say_hello(plan.run_id);
  Peer ours(server.address(), control_identity(Role::kWorker, 0), keys);
  ours.say_hello(plan.run_id);
  zmq::pollitem_t item = server.incoming();
  std::optional<ControlServer::Received> received;
  const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
  while (!received && SteadyClock().now() < deadline) {
    zmq::poll(&item, 1, std::chrono::milliseconds(100));
    received = server.receive();
  }
  ASSERT_TRUE(received);
  EXPECT_TRUE(received->message.has_hello());
  server.welcome(received->process, welcome_with("mode = \"ps\"\n"));
  EXPECT_EQ(ours.hear().first.welcome().config_toml(), "mode = \"ps\"\n");
  EXPECT_FALSE(server.receive());
}

TEST_F(ControlServerTest, IsNotHeldUpByAProcessThatIsGone) {
  {
    Peer worker(server_.address(), control_identity(Role::kWorker, 0));
    greet(worker);
    server_.welcome(0, {});
  }
  FromCoordinator alive;
  alive.mutable_alive();
  for (int i = 0; i < 10; ++i) server_.send(0, alive);
}

}  // namespace
}  // namespace syncopate::experiments

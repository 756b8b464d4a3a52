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

  const JobPlan plan_ = plan_of_two_workers();
  ControlServer server_{plan_};
};

TEST_F(ControlServerTest, KnowsAProcessOfThePlanByItsName) {
  Peer one(server_.address(), control_identity(Role::kWorker, 1)),
      evaluator(server_.address(), control_identity(Role::kEvaluator, 0));
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
  Peer worker(server_.address(), control_identity(Role::kWorker, 0));
  worker.say_step(0);
  ASSERT_TRUE(next());
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
  plain.say_step(1);
  of_another_run.say_step(2);
  Peer ours(server.address(), control_identity(Role::kWorker, 0), keys);
  ours.say_step(3);
  zmq::pollitem_t item = server.incoming();
  std::optional<ControlServer::Received> received;
  const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
  while (!received && SteadyClock().now() < deadline) {
    zmq::poll(&item, 1, std::chrono::milliseconds(100));
    received = server.receive();
  }
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.heartbeat().step(), 3);
  server.welcome(received->process, welcome_with("mode = \"ps\"\n"));
  EXPECT_EQ(ours.hear().first.welcome().config_toml(), "mode = \"ps\"\n");
  EXPECT_FALSE(server.receive());
}

TEST_F(ControlServerTest, IsNotHeldUpByAProcessThatIsGone) {
  {
    Peer worker(server_.address(), control_identity(Role::kWorker, 0));
    worker.say_step(0);
    ASSERT_TRUE(next());
    server_.welcome(0, {});
  }
  FromCoordinator alive;
  alive.mutable_alive();
  for (int i = 0; i < 10; ++i) server_.send(0, alive);
}

}  // namespace
}  // namespace syncopate::experiments

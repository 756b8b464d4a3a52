#include "experiments/cluster/control/zmq_control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/experiments/cluster/control/peer.h"

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
  ResolvedRun config;
  config.mode = Mode::kAllreduce;
  config.workers = 2;
  return make_plan(config, "run-7", "box");
}

class ControlServerTest : public testing::Test {
 protected:
  // The next message that is let through.
  std::optional<ZmqControlServer::Received> next() {
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

  // A connection of this process's.
  Peer peer(Role role, int rank, int incarnation = 0) {
    return Peer(server_.address(), keys_, {role, rank, incarnation});
  }
  // Until so many have been dropped and nothing let through.
  void expect_dropped(std::int64_t count) {
    const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
    zmq::pollitem_t item = server_.incoming();
    while (server_.dropped() < count && SteadyClock().now() < deadline) {
      zmq::poll(&item, 1, std::chrono::milliseconds(10));
      EXPECT_FALSE(server_.receive());
    }
    EXPECT_EQ(server_.dropped(), count);
  }

  const RunKeys keys_ = *RunKeys::make();
  const JobPlan plan_ = plan_of_two_workers();
  ZmqControlServer server_{plan_, {.keys = keys_, .largest_frame = 1 << 20}};
};

TEST_F(ControlServerTest, KnowsAProcessOfThePlanByItsKey) {
  Peer one = peer(Role::kWorker, 1), evaluator = peer(Role::kEvaluator, 0);
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

TEST_F(ControlServerTest, CountsTheBytesOfProcessesOnOtherHostsAlone) {
  JobPlan plan = plan_;
  plan.processes[1].remote = true;
  ASSERT_EQ(plan.processes[1].name(), "worker 1");
  ZmqControlServer server(plan, {.keys = keys_});
  const auto bytes = [](const auto& by_matter) {
    return std::accumulate(by_matter.begin(), by_matter.end(), std::int64_t{0});
  };
  const auto take = [&] {
    const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
    zmq::pollitem_t item = server.incoming();
    while (SteadyClock().now() < deadline) {
      zmq::poll(&item, 1, std::chrono::milliseconds(100));
      if (server.receive()) return true;
    }
    return false;
  };
  Peer here(server.address(), keys_, {Role::kWorker, 0}), there(server.address(), keys_, {Role::kWorker, 1});
  FromCoordinator alive;
  alive.mutable_alive();
  here.say_hello(plan.run_id);
  ASSERT_TRUE(take());
  server.welcome(0, {});
  server.send(0, alive);
  EXPECT_EQ(bytes(server.traffic().in), 0);
  EXPECT_EQ(bytes(server.traffic().out), 0);
  there.say_hello(plan.run_id);
  ASSERT_TRUE(take());
  const std::int64_t hello = bytes(server.traffic().in);
  EXPECT_GT(hello, 0);
  server.send(1, alive);
  EXPECT_EQ(bytes(server.traffic().out), 0) << "held until the welcome";
  server.welcome(1, {});
  EXPECT_GT(bytes(server.traffic().out), 0);
  there.say_step(3);
  ASSERT_TRUE(take());
  EXPECT_GT(bytes(server.traffic().in), hello);
}

TEST_F(ControlServerTest, DropsWhatIsNoMessage) {
  Peer worker = peer(Role::kWorker, 0);
  greet(worker);
  worker.say("\xff\xff\xff");
  worker.say_step(2);
  const auto received = next();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.heartbeat().step(), 2);
  EXPECT_EQ(server_.dropped(), 1);
}

TEST_F(ControlServerTest, LetsAProcessSayWhatItsRoleDoesAndNothingElse) {
  Peer worker = peer(Role::kWorker, 0), evaluator = peer(Role::kEvaluator, 0);
  greet(worker), greet(evaluator);
  ToCoordinator evaluation, snapshot;
  evaluation.mutable_evaluation()->set_accuracy(0.99999);
  snapshot.mutable_snapshot()->set_final(true);
  worker.say(evaluation);
  evaluator.say(snapshot, {1, 2, 3});
  worker.say(ToCoordinator());
  expect_dropped(3);
  worker.say(snapshot, {1, 2, 3});
  EXPECT_TRUE(next()->message.has_snapshot());
  evaluator.say(evaluation);
  EXPECT_TRUE(next()->message.has_evaluation());
}

// Whatever a peer calls itself, it is who has its key.
TEST_F(ControlServerTest, TurnsAwayWhoHasNoKeyOfThisRunsProcesses) {
  Peer intruder(server_.address(), *RunKeys::make(), {Role::kWorker, 0}), of_no_plan = peer(Role::kWorker, 7),
                                                                          yet_to_come = peer(Role::kWorker, 0, 1);
  for (Peer* one : {&intruder, &of_no_plan, &yet_to_come}) one->say_hello(plan_.run_id);
  expect_dropped(3);
}

TEST_F(ControlServerTest, HearsTheNextIncarnationAloneOnceThereIsOne) {
  Peer first = peer(Role::kWorker, 0);
  greet(first);
  EXPECT_EQ(server_.begin_incarnation(0), 1);
  Peer second = peer(Role::kWorker, 0, 1);
  first.say_step(1);
  greet(second);
  first.say_step(2);
  second.say_step(3);
  EXPECT_EQ(next()->message.heartbeat().step(), 3);
  // What is sent goes to the one that is there, whoever spoke last.
  first.say_step(4);
  server_.welcome(0, welcome_with("mode = \"ps\"\n"));
  EXPECT_TRUE(second.hear().first.has_welcome());
  Peer late = peer(Role::kWorker, 0);
  late.say_hello(plan_.run_id);
  expect_dropped(1);
}

// A process that an earlier run has left behind, say.
TEST_F(ControlServerTest, HearsNobodyWhoHasNotSaidHelloInTheNameOfThisRun) {
  Peer late = peer(Role::kWorker, 0);
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
  Peer worker = peer(Role::kWorker, 0);
  greet(worker);
  ToCoordinator forged;
  forged.mutable_heartbeat()->set_step(1);
  // Behind a head and weights, what would be a message of another worker's if it were looked at by itself.
  worker.say_frames({forged.SerializeAsString(), "weights", "worker-1", forged.SerializeAsString()});
  worker.say_step(2);
  const auto received = next();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.heartbeat().step(), 2);
  EXPECT_EQ(server_.dropped(), 1);
}

TEST_F(ControlServerTest, CutsOffWhoAnnouncesAFrameThatIsTooLong) {
  Peer worker = peer(Role::kWorker, 0), flooding = peer(Role::kWorker, 1);
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
  Peer worker = peer(Role::kWorker, 0);
  greet(worker);
  server_.welcome(0, welcome_with("mode = \"ps\"\n"));
  EXPECT_EQ(worker.hear().first.welcome().config_toml(), "mode = \"ps\"\n");
  const auto [held, size] = worker.hear();
  EXPECT_EQ(held.stop().reason(), "early");
  EXPECT_EQ(size, weights.size() * sizeof(float));
}

// Between hosts it is reached over tcp, where everybody can connect.
TEST(ControlServerBetweenHosts, HearsThoseWhoHaveTheRunsKeysAlone) {
  const JobPlan plan = plan_of_two_workers();
  const RunKeys keys = *RunKeys::make();
  ZmqControlServer server(plan, {.keys = keys, .address = "127.0.0.1"});
  zmq::context_t context;
  zmq::socket_t plain(context, zmq::socket_type::dealer);
  plain.set(zmq::sockopt::linger, 0);
  plain.set(zmq::sockopt::routing_id, "worker-0");
  plain.connect(server.address());
  Peer of_another_run(server.address(), *RunKeys::make(), {Role::kWorker, 0});
  ToCoordinator hello;
  hello.mutable_hello()->set_run_id(plan.run_id);
  plain.send(zmq::buffer(hello.SerializeAsString()), zmq::send_flags::none);
  of_another_run.say(hello);
  Peer ours(server.address(), keys, {Role::kWorker, 0});
  ours.say(hello);
  zmq::pollitem_t item = server.incoming();
  std::optional<ZmqControlServer::Received> received;
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
    Peer worker = peer(Role::kWorker, 0);
    greet(worker);
    server_.welcome(0, {});
  }
  FromCoordinator alive;
  alive.mutable_alive();
  for (int i = 0; i < 10; ++i) server_.send(0, alive);
}

TEST(ControlServer, KnowsTheLastOfAThousandAndTwentyFourWorkersAndNoFurtherOne) {
  ResolvedRun config;
  config.mode = Mode::kAllreduce;
  config.workers = 1024;
  const JobPlan plan = make_plan(config, "run-7", "box");
  const RunKeys keys = *RunKeys::make();
  ZmqControlServer server(plan, {.keys = keys});
  Peer intruder(server.address(), keys, {Role::kWorker, 1024}), last(server.address(), keys, {Role::kWorker, 1023});
  intruder.say_hello("run-7");
  last.say_hello("run-7");
  zmq::pollitem_t item = server.incoming();
  std::vector<std::string> heard;
  const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
  while ((heard.empty() || server.dropped() == 0) && SteadyClock().now() < deadline) {
    zmq::poll(&item, 1, std::chrono::milliseconds(10));
    if (auto received = server.receive()) heard.push_back(plan.processes[received->process].name());
  }
  EXPECT_THAT(heard, testing::ElementsAre("worker 1023"));
  EXPECT_EQ(server.dropped(), 1);
}

}  // namespace
}  // namespace syncopate::experiments

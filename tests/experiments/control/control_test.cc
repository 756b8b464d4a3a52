#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <zmq.hpp>

#include "experiments/control/control.pb.h"
#include "experiments/control/control_client.h"
#include "experiments/control/wire_records.h"
#include "experiments/exit_code.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;
using testing::ElementsAre;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""ns;
using std::literals::chrono_literals::operator""s;
using std::literals::chrono_literals::operator""us;

TimePoint soon() { return SteadyClock().now() + 20s; }

struct Received {
  ToCoordinator message;
  std::vector<float> weights;
};

// The coordinator's end: a router that a test reads from and answers with.
class FakeCoordinator {
 public:
  FakeCoordinator() : context_(1), socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.bind("tcp://127.0.0.1:*");
  }

  std::string address() const { return socket_.get(zmq::sockopt::last_endpoint); }

  // The next message of this kind from worker 0; heartbeats are answered and, unless asked for, passed over with all
  // others. Nothing once the deadline has passed.
  std::optional<Received> next(ToCoordinator::KindCase kind) {
    const TimePoint deadline = soon();
    while (SteadyClock().now() < deadline) {
      socket_.set(zmq::sockopt::rcvtimeo, 1000);
      zmq::message_t identity, head, weights;
      if (!socket_.recv(identity)) continue;
      if (identity.to_string() != "worker-0") ADD_FAILURE() << "a message from " << identity.to_string();
      Received received;
      if (!socket_.recv(head) || !received.message.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
        ADD_FAILURE() << "bytes that are no message";
      }
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
    zmq::message_t identity(std::string("worker-0")), head(message.SerializeAsString());
    socket_.send(identity, zmq::send_flags::sndmore);
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
  zmq::context_t context_;
  zmq::socket_t socket_;
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
    return ControlClient::connect(
        {.address = coordinator_.address(), .run_id = "run-7", .role = Role::kWorker, .rank = 0}, activity_, deadline);
  }

  FakeCoordinator coordinator_;
  Activity activity_;
  control::Hello hello_;
  std::unique_ptr<ControlClient> client_;
};

TEST(ControlConnect, GivesUpAtItsDeadlineWhereNobodyAnswers) {
  FakeCoordinator nobody;
  Activity activity;
  const auto client =
      ControlClient::connect({.address = nobody.address(), .run_id = "run-7"}, activity, SteadyClock().now() + 100ms);
  EXPECT_EQ(client.status().code(), Code::kDeadlineExceeded);
}

TEST(ControlConnect, SaysWhichAddressCannotBeUsed) {
  Activity activity;
  const auto client = ControlClient::connect({.address = "nonsense", .run_id = "run-7"}, activity, soon());
  EXPECT_THAT(client.status().message(), testing::HasSubstr("nonsense"));
}

TEST_F(Control, SaysHelloAndReceivesTheConfiguration) {
  EXPECT_EQ(hello_.run_id(), "run-7");
  EXPECT_EQ(hello_.pid(), getpid());
  EXPECT_FALSE(hello_.host().empty());
  EXPECT_EQ(client_->config_toml(), "mode = \"ps\"\n");
}

TEST_F(Control, LetsSeveralThreadsMeetInOneGroup) {
  std::vector<std::future<Result<std::vector<std::string>>>> members;
  for (int rank = 0; rank < 3; ++rank) {
    members.push_back(std::async(std::launch::async, [this, rank] {
      return client_->exchange("data", rank, 3, fmt::format("place {}", rank), soon());
    }));
  }
  std::map<int, std::string> published;
  for (int i = 0; i < 3; ++i) {
    const std::optional<Received> received = coordinator_.next(ToCoordinator::kPublish);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->message.publish().group(), "data");
    EXPECT_EQ(received->message.publish().size(), 3);
    published[received->message.publish().rank()] = received->message.publish().value();
  }
  coordinator_.answer([&](FromCoordinator& message) {
    message.mutable_members()->set_group("data");
    for (const auto& [rank, value] : published) message.mutable_members()->add_values(value);
  });
  for (auto& member : members) {
    const Result<std::vector<std::string>> places = member.get();
    ASSERT_TRUE(places.ok()) << places.status().message();
    EXPECT_THAT(*places, ElementsAre("place 0", "place 1", "place 2"));
  }
}

TEST_F(Control, SaysWhatItWaitedForAtTheDeadline) {
  const auto places = client_->exchange("data", 0, 2, "here", SteadyClock().now() + 50ms);
  EXPECT_EQ(places.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(places.status().message(), testing::HasSubstr("group data"));
}

TEST_F(Control, AsksWhetherAnEpochIsToBeTrained) {
  auto asking = std::async(std::launch::async, [this] { return client_->ask_epoch(4, soon()); });
  const std::optional<Received> question = coordinator_.next(ToCoordinator::kEpochQuestion);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->message.epoch_question().epoch(), 4);
  const auto answer_for = [&](std::int64_t epoch, bool go_on) {
    coordinator_.answer([&](FromCoordinator& message) {
      message.mutable_epoch_answer()->set_epoch(epoch);
      message.mutable_epoch_answer()->set_go_on(go_on);
      message.mutable_epoch_answer()->set_snapshot(true);
    });
  };
  answer_for(3, false);  // not what was asked
  answer_for(4, true);
  const Result<ControlClient::EpochDecision> decision = asking.get();
  ASSERT_TRUE(decision.ok());
  EXPECT_TRUE(decision->go_on);
  EXPECT_TRUE(decision->snapshot);
}

TEST_F(Control, AsksWhetherItsFinalWeightsAreWanted) {
  auto asking = std::async(std::launch::async, [this] { return client_->ask_finish(soon()); });
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kFinishQuestion));
  coordinator_.answer([](FromCoordinator& message) { message.mutable_finish_answer()->set_send_weights(true); });
  const Result<bool> wanted = asking.get();
  ASSERT_TRUE(wanted.ok());
  EXPECT_TRUE(*wanted);
}

TEST_F(Control, SaysInItsHeartbeatsWhatTheProcessIsDoing) {
  activity_.set("wait for weights", 41);
  std::optional<Received> beat;
  do {  // those of before may still be under way
    beat = coordinator_.next(ToCoordinator::kHeartbeat);
  } while (beat && beat->message.heartbeat().step() != 41);
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->message.heartbeat().operation(), "wait for weights");
}

TEST(HeartbeatInterval, IsATenthOfTheTimeoutButNeverMoreThanASecond) {
  EXPECT_EQ(heartbeat_interval(1s), 100ms);
  EXPECT_EQ(heartbeat_interval(9s), 900ms);
  EXPECT_EQ(heartbeat_interval(10s), 1s);
  EXPECT_EQ(heartbeat_interval(3600s), 1s);
}

// Records leave every 200 ms. With a timeout of 1 s heartbeats are due more often, the very first one included: none
// may wait for what the default timeout had set.
TEST_F(Control, BeatsAtOnceAsOftenAsANewTimeoutAsksFor) {
  client_->set_timeout(1s);
  client_->add({.step = 1});
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kSteps));
  const int heartbeats = coordinator_.heartbeats();
  client_->add({.step = 2});
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kSteps));
  EXPECT_GT(coordinator_.heartbeats(), heartbeats);
}

TEST_F(Control, HandsOverStepRecordsAsTheyAre) {
  StepRecord record;
  record.step = 5;
  record.epoch = 1;
  record.end = TimePoint(123456789ns);
  record.total = 900us;
  record.data = 1us;
  record.forward = 2us;
  record.backward = 3us;
  record.launch = 11us;
  record.sync = {.exposed_wait = 4us,
                 .communication = 5us,
                 .optimizer = 6us,
                 .copy = 10us,
                 .bytes_out = 7,
                 .bytes_in = 8,
                 .staleness_mean = 1.5,
                 .staleness_max = 2};
  record.samples = 64;
  record.loss = 0.25;
  client_->add(record);
  const std::optional<Received> received = coordinator_.next(ToCoordinator::kSteps);
  ASSERT_TRUE(received);
  ASSERT_EQ(received->message.steps().steps_size(), 1);
  const StepRecord got = from_wire(received->message.steps().steps(0));
  EXPECT_EQ(got.step, record.step);
  EXPECT_EQ(got.epoch, record.epoch);
  EXPECT_EQ(got.end, record.end);
  EXPECT_EQ(got.total, record.total);
  EXPECT_EQ(got.data, record.data);
  EXPECT_EQ(got.forward, record.forward);
  EXPECT_EQ(got.backward, record.backward);
  EXPECT_EQ(got.sync.exposed_wait, record.sync.exposed_wait);
  EXPECT_EQ(got.sync.communication, record.sync.communication);
  EXPECT_EQ(got.sync.optimizer, record.sync.optimizer);
  EXPECT_EQ(got.sync.copy, record.sync.copy);
  EXPECT_EQ(got.launch, record.launch);
  EXPECT_EQ(got.sync.bytes_out, record.sync.bytes_out);
  EXPECT_EQ(got.sync.bytes_in, record.sync.bytes_in);
  EXPECT_EQ(got.sync.staleness_mean, record.sync.staleness_mean);
  EXPECT_EQ(got.sync.staleness_max, record.sync.staleness_max);
  EXPECT_EQ(got.samples, record.samples);
  EXPECT_EQ(got.loss, record.loss);
}

TEST_F(Control, CarriesSnapshotsBothWays) {
  const WeightsSnapshot stamp{.epoch = 2, .steps_done = 300, .taken = TimePoint(77ns), .final = true, .weights = {}};
  client_->send_snapshot(stamp, std::vector<float>{1, 2, 3});
  const std::optional<Received> sent = coordinator_.next(ToCoordinator::kSnapshot);
  ASSERT_TRUE(sent);
  EXPECT_THAT(sent->weights, ElementsAre(1, 2, 3));

  coordinator_.answer([&](FromCoordinator& message) { *message.mutable_snapshot() = sent->message.snapshot(); },
                      sent->weights);
  const Result<WeightsSnapshot> got = client_->next_snapshot();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->epoch, 2);
  EXPECT_EQ(got->steps_done, 300);
  EXPECT_EQ(got->taken, stamp.taken);
  EXPECT_TRUE(got->final);
  EXPECT_THAT(got->weights, ElementsAre(1, 2, 3));
}

TEST_F(Control, EndsAWaitAndCallsBackOnceWhenToldToStop) {
  std::atomic<int> calls = 0;
  std::promise<void> called;
  client_->on_stop([&] {
    if (++calls == 1) called.set_value();
  });
  auto asking = std::async(std::launch::async, [this] { return client_->ask_epoch(0, soon()); });
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kEpochQuestion));
  coordinator_.stop();
  coordinator_.stop();
  EXPECT_EQ(asking.get().status().code(), Code::kCancelled);
  ASSERT_EQ(called.get_future().wait_until(soon()), std::future_status::ready);
  EXPECT_EQ(client_->next_snapshot().status().code(), Code::kCancelled);
  coordinator_.lose(1);  // once that is known, the second stop has been handled
  std::promise<void> lost;
  client_->on_worker_lost([&](int) { lost.set_value(); });
  ASSERT_EQ(lost.get_future().wait_until(soon()), std::future_status::ready);
  client_->on_worker_lost(nullptr);
  client_->on_stop(nullptr);
  EXPECT_EQ(calls, 1);
}

TEST_F(Control, CallsBackAtOnceWhereItHasBeenToldToStopBefore) {
  coordinator_.stop();
  EXPECT_EQ(client_->next_snapshot().status().code(), Code::kCancelled);
  std::promise<void> called;
  client_->on_stop([&] { called.set_value(); });
  EXPECT_EQ(called.get_future().wait_until(soon()), std::future_status::ready);
  client_->on_stop(nullptr);
}

TEST_F(Control, TellsOfLostWorkersBeforeAndAfterSomebodyListens) {
  coordinator_.lose(2);
  coordinator_.answer([](FromCoordinator& message) { message.mutable_snapshot(); });
  ASSERT_TRUE(client_->next_snapshot().ok());  // so what came before it has been handled
  std::vector<int> lost;
  std::promise<void> both;
  client_->on_worker_lost([&](int rank) {
    lost.push_back(rank);
    if (lost.size() == 2) both.set_value();
  });
  coordinator_.lose(1);
  ASSERT_EQ(both.get_future().wait_until(soon()), std::future_status::ready);
  client_->on_worker_lost(nullptr);
  EXPECT_THAT(lost, ElementsAre(2, 1));
}

TEST_F(Control, StopsOnceTheCoordinatorHasBeenSilentForTheTimeout) {
  std::promise<void> stopped;
  client_->on_stop([&] { stopped.set_value(); });
  activity_.rest("serving", 0);
  client_->set_timeout(300ms);
  EXPECT_EQ(stopped.get_future().wait_until(soon()), std::future_status::ready);
  EXPECT_EQ(client_->ask_finish(soon()).status().code(), Code::kCancelled);
  client_->on_stop(nullptr);
}

TEST_F(Control, SendsItsLastWordsBeforeItIsDestroyed) {
  StepRecord record;
  record.step = 9;
  client_->add(record);
  client_->finished(3, 6, 1);
  client_.reset();
  const std::optional<Received> steps = coordinator_.next(ToCoordinator::kSteps);  // before the last word
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->message.steps().steps(0).step(), 9);
  const std::optional<Received> finished = coordinator_.next(ToCoordinator::kFinished);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->message.finished().server().updates(), 3);
  EXPECT_EQ(finished->message.finished().server().pushes(), 6);
  EXPECT_EQ(finished->message.finished().server().dropped(), 1);
}

TEST_F(Control, SendsItsLastRecordsBeforeItIsDestroyedWhateverItSaidBefore) {
  client_->add({.step = 8});
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kSteps));  // records have just left: the next would in a while
  client_->add({.step = 9});
  client_.reset();
  const std::optional<Received> steps = coordinator_.next(ToCoordinator::kSteps);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->message.steps().steps(0).step(), 9);
}

TEST_F(Control, TellsAFact) {
  client_->tell("collective", "NCCL 2.28.9");
  const std::optional<Received> received = coordinator_.next(ToCoordinator::kFact);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.fact().name(), "collective");
  EXPECT_EQ(received->message.fact().value(), "NCCL 2.28.9");
}

TEST_F(Control, ReportsAFailureWithWhatTheProcessWasDoing) {
  activity_.set("join", 0);
  client_->failed(Status(Code::kDataLoss, "labels of 12"));
  client_->failed(Status(Code::kInternal, "what followed from it"));
  client_->finished(0, 0, 0);
  client_.reset();
  const std::optional<Received> received = coordinator_.next(ToCoordinator::kFailure);
  ASSERT_TRUE(received);
  const control::Failure& failure = received->message.failure();
  EXPECT_EQ(static_cast<Code>(failure.code()), Code::kDataLoss);
  EXPECT_EQ(failure.message(), "labels of 12");
  EXPECT_EQ(failure.operation(), "join");
  EXPECT_TRUE(coordinator_.next(ToCoordinator::kFinished));
}

using ControlDeathTest = Control;

TEST_F(ControlDeathTest, EndsAProcessWhoseWorkStandsStill) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  activity_.set("inside a library", 3);
  EXPECT_EXIT(
      {
        client_->set_timeout(1ms);
        (void)coordinator_.next(ToCoordinator::kFinished);  // never comes: this only waits
        _exit(0);
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::kTimeout)), "");
}

}  // namespace
}  // namespace syncopate::experiments

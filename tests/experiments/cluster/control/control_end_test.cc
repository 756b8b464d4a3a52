// How a process is told to stop, loses the coordinator, and says its last words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "experiments/cluster/control/wire_records.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/cluster/starter.h"
#include "tests/experiments/cluster/control/fake_coordinator.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using std::literals::chrono_literals::operator""ms;

TEST_F(Control, EndsAWaitAndCallsBackOnceWhenToldToStop) {
  std::atomic<int> calls = 0;
  std::promise<void> called;
  Subscription on_stop = client_->on_stop([&] {
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
  Subscription on_loss = client_->on_worker_lost([&](int) { lost.set_value(); });
  ASSERT_EQ(lost.get_future().wait_until(soon()), std::future_status::ready);
  on_loss.reset();
  on_stop.reset();
  EXPECT_EQ(calls, 1);
}

TEST_F(Control, CallsBackAtOnceWhereItHasBeenToldToStopBefore) {
  coordinator_.stop();
  EXPECT_EQ(client_->next_snapshot().status().code(), Code::kCancelled);
  std::promise<void> called;
  Subscription on_stop = client_->on_stop([&] { called.set_value(); });
  EXPECT_EQ(called.get_future().wait_until(soon()), std::future_status::ready);
  on_stop.reset();
}

TEST_F(Control, TellsOfLostWorkersBeforeAndAfterSomebodyListens) {
  coordinator_.lose(2);
  coordinator_.answer([](FromCoordinator& message) { message.mutable_snapshot(); });
  ASSERT_TRUE(client_->next_snapshot().ok());  // so what came before it has been handled
  std::vector<int> lost;
  std::promise<void> both;
  Subscription on_loss = client_->on_worker_lost([&](int rank) {
    lost.push_back(rank);
    if (lost.size() == 2) both.set_value();
  });
  coordinator_.lose(1);
  ASSERT_EQ(both.get_future().wait_until(soon()), std::future_status::ready);
  on_loss.reset();
  EXPECT_THAT(lost, ElementsAre(2, 1));
}

TEST_F(Control, StopsOnceTheCoordinatorHasBeenSilentForTheTimeout) {
  std::promise<void> stopped;
  Subscription on_stop = client_->on_stop([&] { stopped.set_value(); });
  activity_.rest("serving", 0);
  client_->set_timeout(300ms);
  EXPECT_EQ(stopped.get_future().wait_until(soon()), std::future_status::ready);
  EXPECT_EQ(client_->ask_finish(soon()).status().code(), Code::kCancelled);
  on_stop.reset();
}

// Names a program that has died as the starter, before the client's thread begins and until it has ended.
class DeadStarter {
 protected:
  DeadStarter() {
    const pid_t starter = fork();
    if (starter == 0) _exit(0);
    waitpid(starter, nullptr, 0);
    const auto [name, value] = named_starter(starter);
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~DeadStarter() { unsetenv(named_starter(0).first.c_str()); }
};
class OrphanedControl : DeadStarter, public Control {};

TEST_F(OrphanedControl, StopsLongBeforeTheTimeout) {
  const TimePoint began = SteadyClock().now();
  constexpr Duration kTimeout = 16000ms;
  client_->set_timeout(kTimeout);
  EXPECT_EQ(client_->ask_finish(soon()).status().code(), Code::kCancelled);
  EXPECT_LT(SteadyClock().now() - began, kTimeout / 2);
}

TEST_F(Control, SendsItsLastWordsBeforeItIsDestroyed) {
  StepRecord record;
  record.step = 9;
  client_->add(record);
  const ServerFigures figures{.updates = 3,
                              .pushes = 6,
                              .dropped = 1,
                              .busy = 5ms,
                              .serving = 9ms,
                              .bytes_in = 100,
                              .bytes_out = 200,
                              .core_wait = 2ms};
  client_->finished(figures);
  client_.reset();
  const std::optional<Received> steps = coordinator_.next(ToCoordinator::kSteps);  // before the last word
  ASSERT_TRUE(steps);
  EXPECT_EQ(unpack_steps(steps->message.steps().packed())->front().record.step, 9);
  const std::optional<Received> finished = coordinator_.next(ToCoordinator::kFinished);
  ASSERT_TRUE(finished);
  EXPECT_EQ(from_wire(finished->message.finished()), figures);
}

TEST_F(Control, SendsItsLastRecordsBeforeItIsDestroyedWhateverItSaidBefore) {
  client_->add({.step = 8});
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kSteps));  // records have just left: the next would in a while
  client_->add({.step = 9});
  client_.reset();
  const std::optional<Received> steps = coordinator_.next(ToCoordinator::kSteps);
  ASSERT_TRUE(steps);
  EXPECT_EQ(unpack_steps(steps->message.steps().packed())->front().record.step, 9);
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
  client_->failed(Status::data_loss("labels of 12"));
  client_->failed(Status::internal("what followed from it"));
  client_->finished({});
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

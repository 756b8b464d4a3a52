#include "experiments/cluster/tasks/task_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/os/socket_user.h"
#include "common/transport/local_socket.h"
#include "common/transport/run_keys.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_command.h"
#include "experiments/cluster/tasks/task_group.h"
#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"
#include "tests/support/slowness.h"

namespace syncopate::experiments {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Duration kDeadline = 30s * testing_support::kSlowness;

// A task that waits in a process of its own.
class TaskServerTest : public testing::Test {
 protected:
  void start(Duration patience = kDeadline) {
    place_ = {.by = StartedBy::kOpenMpi, .size = 2, .job = "test-" + std::to_string(getpid())};
    pid_ = fork();
    if (pid_ > 0) return;
    _exit(serve_task({.program = testing_support::syncopate_program(),
                      .place = {.by = place_.by, .rank = 1, .size = 2, .job = place_.job},
                      .patience = patience}));
  }
  ~TaskServerTest() override {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // The exit code of the task; -1 if it has not ended in time.
  int end() {
    const TimePoint deadline = SteadyClock().now() + kDeadline;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (SteadyClock().now() > deadline) return -1;
      usleep(5'000);
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  Result<TaskGroup> gather() { return TaskGroup::gather(place_, {.timeout = kDeadline}); }
  static TimePoint deadline() { return SteadyClock().now() + kDeadline; }

  TaskPlace place_;
  pid_t pid_ = 0;
};

TEST_F(TaskServerTest, ReportsItsHostAndEndsWellWhenTheRunIsOver) {
  start();
  {
    const Result<TaskGroup> group = gather();
    ASSERT_TRUE(group.ok()) << group.status().message();
    ASSERT_EQ(group->tasks().size(), 2u);
    EXPECT_EQ(group->tasks()[0].report.environment.host, group->tasks()[1].report.environment.host);
  }
  EXPECT_EQ(end(), 0);
}

TEST_F(TaskServerTest, SaysWhoHasTakenItsNameAndWhatToDo) {
  place_ = {.by = StartedBy::kOpenMpi, .rank = 1, .size = 2, .job = "test-" + std::to_string(getpid())};
  const std::string name = *local_address_of(place_, 1);
  const Result<FileDescriptor> taken = listen_locally(name);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_EXIT(exit(serve_task({.place = place_})), testing::ExitedWithCode(static_cast<int>(ExitCode::kOutput)),
              testing::AllOf(HasSubstr("the name '@" + name + "' of a local socket is taken: " +
                                       describe_user(geteuid()) + ", pid " + std::to_string(getpid()) + " has it"),
                             HasSubstr("give each process SYNCOPATE_SECRET_FILE=FILE")));
}

TEST_F(TaskServerTest, HasANameThatNobodyElsePredictsWhereThereIsASecret) {
  const testing_support::TemporaryFolder folder;
  place_ = {.by = StartedBy::kTorchrun, .size = 2, .job = "job"};
  const std::string open = *local_address_of(place_, 1);
  const auto with = [&](const char* file, char bytes) {
    place_.secret_file = folder.path() / file;
    std::ofstream(place_.secret_file) << std::string(32, bytes);
    std::filesystem::permissions(place_.secret_file, std::filesystem::perms::owner_read);
    return *local_address_of(place_, 1);
  };
  const std::string one = with("one", 'a'), other = with("other", 'b');
  EXPECT_NE(one, open);
  EXPECT_NE(one, other);
  EXPECT_EQ(one, with("again", 'a'));
  EXPECT_EQ(one.size(), open.size());
}

TEST_F(TaskServerTest, PassesOnWhatAProcessPrintsAndHowItEnds) {
  start();
  const Result<TaskGroup> group = gather();
  ASSERT_TRUE(group.ok());
  for (int round = 0; round < 2; ++round) {  // one process after the other
    Result<TaskConnection> shell = connect_to_task(*local_address_of(place_, 1), "", deadline());
    ASSERT_TRUE(shell.ok());
    const TaskCommand command{.arguments = {"--role=worker", "--rank=x"}};  // which the program refuses
    ASSERT_TRUE(shell->send({TaskMessage::Kind::kCommand, to_bytes(command)}, deadline()).ok());
    std::string output;
    while (true) {
      const Result<TaskMessage> message = shell->receive_by(deadline());
      ASSERT_TRUE(message.ok());
      if (message->kind == TaskMessage::Kind::kEnd) {
        EXPECT_EQ(message->bytes, "2");
        break;
      }
      output += message->bytes;
    }
    EXPECT_EQ(output, "--rank=x: no number\n");
  }
}

TEST_F(TaskServerTest, KillsItsProcessWhenTheShellIsGone) {
  start();
  const Result<TaskGroup> group = gather();
  ASSERT_TRUE(group.ok());
  // It waits for the run's secret, which does not come; the next command is taken once it is dead.
  for (int round = 0; round < 3; ++round) {
    Result<TaskConnection> shell = connect_to_task(*local_address_of(place_, 1), "", deadline());
    ASSERT_TRUE(shell.ok());
    const TaskCommand command{.arguments = {"--role=worker", "--rank=1", "--run=r", "--rendezvous=ipc://@x"},
                              .input = SecretText("not the whole line")};
    ASSERT_TRUE(shell->send({TaskMessage::Kind::kCommand, to_bytes(command)}, deadline()).ok());
  }
}

TEST_F(TaskServerTest, SignalsItsProcessAsTheShellSays) {
  start();
  const Result<TaskGroup> group = gather();
  ASSERT_TRUE(group.ok());
  Result<TaskConnection> shell = connect_to_task(*local_address_of(place_, 1), "", deadline());
  ASSERT_TRUE(shell.ok());
  // It waits for a coordinator that does not come.
  const Result<RunKeys> keys = RunKeys::make();
  ASSERT_TRUE(keys.ok());
  const TaskCommand command{.arguments = {"--role=worker", "--rank=1", "--run=r", "--rendezvous=ipc://@x"},
                            .input = SecretText(keys->to_text().view(), "\n")};
  ASSERT_TRUE(shell->send({TaskMessage::Kind::kCommand, to_bytes(command)}, deadline()).ok());
  for (const int ordered : {SIGUSR1, SIGKILL}) {  // the first is none that may be ordered
    ASSERT_TRUE(shell->send({TaskMessage::Kind::kSignal, std::to_string(ordered)}, deadline()).ok());
  }
  const Result<TaskMessage> message = shell->receive_by(deadline());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->kind, TaskMessage::Kind::kEnd);
  EXPECT_EQ(message->bytes, std::to_string(128 + SIGKILL));
}

TEST_F(TaskServerTest, EndsWhenTheCoordinatorIsGoneWithoutARelease) {
  start();
  {
    Result<TaskConnection> hold = connect_to_task(*local_address_of(place_, 1), "", deadline());
    ASSERT_TRUE(hold.ok());
    ASSERT_TRUE(hold->send({TaskMessage::Kind::kHold}, deadline()).ok());
    ASSERT_TRUE(hold->receive_by(deadline()).ok());
  }
  EXPECT_EQ(end(), 5);
}

TEST_F(TaskServerTest, WaitsForTheCoordinatorOnlySoLong) {
  start(50ms);
  EXPECT_EQ(end(), 6);
}

TEST_F(TaskServerTest, EndsAtOnceIfAskedToBeforeTheRunHasBegun) {
  start();
  ASSERT_TRUE(connect_to_task(*local_address_of(place_, 1), "", deadline()).ok());  // it listens
  kill(pid_, SIGTERM);
  EXPECT_EQ(end(), 130);
}

TEST_F(TaskServerTest, LeavesSignalsToTheCoordinatorDuringARun) {
  start();
  {
    const Result<TaskGroup> group = gather();
    ASSERT_TRUE(group.ok());
    kill(pid_, SIGTERM);
    // It still answers.
    Result<TaskConnection> shell = connect_to_task(*local_address_of(place_, 1), "", deadline());
    ASSERT_TRUE(shell.ok());
    const TaskCommand command{.arguments = {"--role=x"}};
    ASSERT_TRUE(shell->send({TaskMessage::Kind::kCommand, to_bytes(command)}, deadline()).ok());
    ASSERT_TRUE(shell->receive_by(deadline()).ok());
  }
  EXPECT_EQ(end(), 0);
}

TEST(TaskGroup, NamesTheTaskThatHasNotCome) {
  const TaskPlace place{.by = StartedBy::kSlurm, .size = 3, .job = "nobody-" + std::to_string(getpid())};
  const Result<TaskGroup> group = TaskGroup::gather(place, {.timeout = 100ms});
  EXPECT_EQ(group.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(group.status().message().find("rank 1 of the 3 that srun has started has not come within 0.1 s"), 0u)
      << group.status().message();
}

}  // namespace
}  // namespace syncopate::experiments

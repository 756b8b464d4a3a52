#include "experiments/cluster/process/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/process/signal_orders.h"
#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

constexpr int kDeadlineMs = 20'000;

// A guard, in a process of its own, over a shell.
class GuardTest : public testing::Test {
 protected:
  void start(const std::string& script) {
    Result<StartedChild> guard = start_child({testing_support::syncopate_program(), "--guard", "sh", "-c", script}, {},
                                             "guard", log(), "a line\n");
    ASSERT_TRUE(guard.ok()) << guard.status().message();
    guard_ = std::move(*guard);
  }

  // Its exit code; -1 if it does not end.
  int end() {
    pollfd item{guard_.handle.descriptor(), POLLIN, 0};
    if (poll(&item, 1, kDeadlineMs) != 1) {
      kill(guard_.pid, SIGKILL);
      ADD_FAILURE() << "the guard does not end";
    }
    int status = 0;
    waitpid(guard_.pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string log() const { return folder_.path() / "log"; }

  // The process below the guard, once it has written its id as its first line.
  pid_t process() {
    const TimePoint deadline = SteadyClock().now() + std::chrono::milliseconds(kDeadlineMs);
    while (SteadyClock().now() < deadline) {
      const std::string text = testing_support::text_of(log());
      if (text.find('\n') != std::string::npos) return std::stoi(text);
      poll(nullptr, 0, 5);
    }
    ADD_FAILURE() << "nothing was written";
    return 0;
  }

  // Until it is in this state, as ps writes it.
  static bool comes_to(pid_t process, char state) {
    const TimePoint deadline = SteadyClock().now() + std::chrono::milliseconds(kDeadlineMs);
    for (std::string word; SteadyClock().now() < deadline; poll(nullptr, 0, 5)) {
      std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
      if (stat >> word >> word >> word && word[0] == state) return true;
    }
    return false;
  }

  // It is gone, or will be: init reaps what the guard leaves behind.
  static bool ends(pid_t process) {
    const TimePoint deadline = SteadyClock().now() + std::chrono::milliseconds(kDeadlineMs);
    while (SteadyClock().now() < deadline) {
      std::string state;
      std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
      if (!(stat >> state >> state >> state) || state == "Z") return true;
      poll(nullptr, 0, 5);
    }
    return false;
  }

  testing_support::TemporaryFolder folder_;
  StartedChild guard_;
};

TEST_F(GuardTest, PassesOnStandardInputAndTheExitCode) {
  start("read line; echo \"$line\"; exit 7");
  EXPECT_EQ(end(), 7);
  EXPECT_EQ(testing_support::text_of(log()), "a line\n");
}

TEST_F(GuardTest, SaysWhichSignalKilledTheProcess) {
  start("kill -9 $$");
  EXPECT_EQ(end(), 128 + SIGKILL);
}

TEST_F(GuardTest, SaysThatAProgramCannotBeStarted) {
  Result<StartedChild> guard = start_child({testing_support::syncopate_program(), "--guard", "/no/such/program"}, {},
                                           "guard", log(), "a line\n");
  ASSERT_TRUE(guard.ok());
  guard_ = std::move(*guard);
  EXPECT_EQ(end(), 127);
  EXPECT_THAT(testing_support::text_of(log()), testing::HasSubstr("cannot start /no/such/program: No such file"));
}

TEST_F(GuardTest, TerminatesTheProcessWhenItsInputEnds) {
  start("echo $$; exec sleep 60");
  const pid_t below = process();
  guard_.input = FileDescriptor();
  EXPECT_EQ(end(), 128 + SIGTERM);
  EXPECT_TRUE(ends(below));
}

TEST_F(GuardTest, SignalsTheProcessAsItIsTold) {
  start("read line; echo $$; exec sleep 60");
  const pid_t below = process();
  const auto order = [&](int signal) {
    const std::string text = signal_order(signal);
    ASSERT_EQ(write(guard_.input.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  order(SIGSTOP);
  EXPECT_TRUE(comes_to(below, 'T'));
  order(SIGCONT);
  EXPECT_TRUE(comes_to(below, 'S'));
  order(SIGKILL);
  EXPECT_EQ(end(), 128 + SIGKILL);
}

TEST_F(GuardTest, LetsTheProcessCleanUp) {
  start("trap 'echo clean; exit 9' TERM; echo $$; while :; do sleep 0.01; done");
  process();
  guard_.input = FileDescriptor();
  EXPECT_EQ(end(), 9);
  EXPECT_THAT(testing_support::text_of(log()), testing::HasSubstr("clean"));
}

TEST_F(GuardTest, KillsWhatTheProcessHasLeftBehind) {
  start("setsid sleep 60 & echo $!; exit 3");
  const pid_t left = process();
  EXPECT_EQ(end(), 3);
  EXPECT_TRUE(ends(left));
}

// Its parent is to hear what has become of the process.
TEST_F(GuardTest, DiesOfWhatKilledTheProcessWhereItIsLocal) {
  Result<StartedChild> guard = start_child(
      {testing_support::syncopate_program(), "--local-guard", "sh", "-c", "kill -9 $$"}, {}, "guard", log(), "");
  ASSERT_TRUE(guard.ok()) << guard.status().message();
  int status = 0;
  ASSERT_EQ(waitpid(guard->pid, &status, 0), guard->pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

// Schedulers send it to all processes of a job.
TEST_F(GuardTest, OfAProcessOfARunLeavesSigtermToTheCoordinator) {
  const std::string script = folder_.path() / "program";
  std::ofstream(script) << "#!/bin/sh\ntrap 'echo heard' TERM; echo $$; while :; do sleep 0.01; done\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Result<StartedChild> guard = start_child({testing_support::syncopate_program(), "--guard", script, "--role=worker"},
                                           {}, "guard", log(), "a line\n");
  ASSERT_TRUE(guard.ok());
  guard_ = std::move(*guard);
  const pid_t below = process();
  kill(guard_.pid, SIGTERM);
  pollfd item{.fd = guard_.handle.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&item, 1, 100), 0) << "it has ended";
  guard_.input = FileDescriptor();
  EXPECT_EQ(end(), 128 + SIGKILL) << "at once: it would not end by SIGTERM";
  EXPECT_TRUE(ends(below));
  EXPECT_THAT(testing_support::text_of(log()), testing::Not(testing::HasSubstr("heard")));
}

// Which could not end itself.
TEST_F(GuardTest, KillsAProcessThatIsStopped) {
  start("trap 'exit 9' TERM; echo $$; while :; do sleep 0.01; done");
  const pid_t below = process();
  kill(below, SIGSTOP);
  guard_.input = FileDescriptor();
  EXPECT_EQ(end(), 128 + SIGKILL);
  EXPECT_TRUE(ends(below));
}

TEST_F(GuardTest, TakesTheProcessAlongWhenItIsKilled) {
  start("echo $$; exec sleep 60");
  const pid_t below = process();
  kill(guard_.pid, SIGKILL);
  EXPECT_EQ(end(), -1);
  EXPECT_TRUE(ends(below));
}

}  // namespace
}  // namespace syncopate::experiments

#include "common/os/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

namespace syncopate {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kSoon{20};

TimePoint soon() { return SteadyClock().now() + kSoon; }

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
  }

  FileDescriptor read_end, write_end;
};

// Runs a shell's script to its end; returns what it prints, and its status.
std::pair<std::string, int> result_of(const std::string& script, ChildOptions options = {}) {
  Pipe output;
  options.command = {"sh", "-c", script};
  options.output = output.write_end.get();
  const Result<ChildProcess> child = spawn(options);
  EXPECT_TRUE(child.ok()) << child.status().message();
  output.write_end = FileDescriptor();
  std::string text(1000, '\0');
  std::size_t size = 0;
  for (ssize_t count; (count = read(output.read_end.get(), text.data() + size, text.size() - size)) > 0;) {
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  int status = -1;
  EXPECT_EQ(waitpid(child->pid, &status, 0), child->pid);
  return {text, status};
}

TEST(ChildProcess, HasWhatItIsGiven) {
  Pipe input;
  ASSERT_EQ(write(input.write_end.get(), "word\n", 5), 5);
  input.write_end = FileDescriptor();
  ChildOptions options;
  options.environment = {{"GIVEN", "a value"}, {"HOME", "/elsewhere"}};
  options.input = input.read_end.get();
  const auto [text, status] = result_of("read line; echo \"$line, $GIVEN, $HOME\"; exit 3", options);
  EXPECT_EQ(text, "word, a value, /elsewhere\n");
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(ChildProcess, ReadsNothingWithoutInput) { EXPECT_EQ(result_of("cat; echo end").first, "end\n"); }

TEST(ChildProcess, LeadsAGroupOnlyWhereThatIsAskedFor) {
  const std::string own = "[ $(ps -o pgid= -p $$) = $$ ] && echo own || echo other";
  ChildOptions leader;
  leader.own_group = true;
  EXPECT_EQ(result_of(own).first, "other\n");
  EXPECT_EQ(result_of(own, leader).first, "own\n");
}

TEST(ChildProcess, BeginsWithoutBlockedSignals) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  EXPECT_EQ(result_of("kill -TERM $$; echo lives").first, "");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ChildProcess, CannotBeStartedFromNothing) {
  const Status status = spawn({.command = {"/nowhere/program"}, .environment = {}}).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), "No such file or directory");
}

TEST(ProcessHandle, SeesTheEndOfItsProcess) {
  const Result<ChildProcess> child = spawn({.command = {"sleep", "1000"}, .environment = {}});
  ASSERT_TRUE(child.ok()) << child.status().message();
  EXPECT_FALSE(child->handle.has_ended());
  EXPECT_FALSE(child->handle.ends_before(SteadyClock().now() + std::chrono::milliseconds(10)));
  EXPECT_EQ(child->handle.send(SIGKILL), 0);
  EXPECT_TRUE(child->handle.ends_before(soon()));
  EXPECT_TRUE(child->handle.has_ended()) << "its status has not been collected";
  waitpid(child->pid, nullptr, 0);
  EXPECT_TRUE(child->handle.has_ended());
  EXPECT_EQ(child->handle.send(SIGTERM), ESRCH);
  EXPECT_EQ(ProcessHandle::of(child->pid).status().code(), Code::kNotFound);
}

TEST(ProcessHandle, IsNotThereForWhatIsNoProcess) {
  EXPECT_EQ(ProcessHandle::of(-1).status().code(), Code::kInternal);
  EXPECT_THAT(ProcessHandle::of(-1).status().message(), HasSubstr("pidfd_open: Invalid argument"));
  EXPECT_FALSE(ProcessHandle().open());
}

}  // namespace
}  // namespace syncopate

// The agent that mpirun calls in the place of ssh, with a stand-in for the remote shell, and the lending of keys.
#include "experiments/cluster/process/mpirun_agent.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/process/shared_keys.h"
#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

TEST(SharedKeys, AreReadAgainAndAgainAsLongAsTheyAreShared) {
  std::optional<FileDescriptor> shared(std::move(*lend("the keys")));
  setenv(kSharedKeys, path_of(*shared).c_str(), 1);
  for (int i = 0; i < 2; ++i) {
    const Result<SecretText> line = shared_line();
    ASSERT_TRUE(line.ok()) << line.status().message();
    EXPECT_EQ(line->view(), "the keys");
  }
  shared.reset();
  EXPECT_EQ(shared_line().status().code(), Code::kPeerLost);
  unsetenv(kSharedKeys);
  EXPECT_EQ(shared_line().status().code(), Code::kInternal);
}

class MpirunAgent : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(shell()) << "#!/bin/sh\necho \"to $1\"\nexec sh -c \"$2\"\n";
    std::filesystem::permissions(shell(), std::filesystem::perms::owner_all);
  }
  std::string shell() const { return folder_.path() / "a shell"; }
  std::string log() const { return folder_.path() / "log"; }
  std::string text() const { return testing_support::text_of(log()); }

  // As mpirun starts it, with what it appends.
  StartedChild start(const std::vector<std::string>& appended) {
    std::vector<std::string> command{testing_support::syncopate_program(), "--mpirun-agent"};
    command.insert(command.end(), appended.begin(), appended.end());
    auto environment =
        environment_of_agent({.words = {shell()}, .program = testing_support::syncopate_program(), .directory = "/"});
    environment.emplace_back(kSharedKeys, path_of(memory_));
    Result<StartedChild> agent = start_child(command, environment, "agent", log());
    EXPECT_TRUE(agent.ok());
    return std::move(*agent);
  }

 private:
  testing_support::TemporaryFolder folder_;
  const FileDescriptor memory_ = std::move(*lend("the keys"));
};

TEST_F(MpirunAgent, StartsTheDaemonThroughTheShellAndLendsItTheKeys) {
  const StartedChild agent =
      start({"node1", " cat", "$SYNCOPATE_LENT_KEYS;", "echo", "\"a  b\"", "$SYNCOPATE_LENT_KEYS"});
  int status = 0;
  waitpid(agent.pid, &status, 0);
  EXPECT_EQ(status, 0) << text();
  EXPECT_THAT(text(), testing::MatchesRegex("to node1\nthe keys\na  b /proc/[0-9]+/fd/[0-9]+\n"));
}

TEST_F(MpirunAgent, SaysWhyItCannotStartTheShell) {
  std::filesystem::remove(shell());
  const StartedChild agent = start({"node1", "true"});
  int status = 0;
  waitpid(agent.pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 127);
  EXPECT_THAT(text(), HasSubstr("a shell: No such file or directory"));
}

}  // namespace
}  // namespace syncopate::experiments

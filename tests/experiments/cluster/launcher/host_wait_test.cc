#include "experiments/cluster/launcher/host_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::TemporaryFolder;
using testing_support::text_of;

// A remote shell that is a script: $1 is the host, $2 the command.
RemoteShell shell_of(const TemporaryFolder& folder, const std::string& script) {
  const std::filesystem::path file = folder.path() / "shell";
  std::ofstream(file) << "cd '" << folder.path().string() << "'\n" << script << "\n";
  return {.words = {"sh", file.string()}, .program = "/bin/true", .directory = "/"};
}

TEST(WaitForHosts, TriesEachHostUntilItIsThereAndThenNoMore) {
  const TemporaryFolder folder;
  const RemoteShell shell = shell_of(folder, R"(echo "$2" >>"$1"; [ "$1" = early ] || [ $(wc -l <"$1") = 3 ])");
  const Status reached = wait_for_hosts(shell, {"early", "late"}, std::chrono::seconds(60));
  EXPECT_TRUE(reached.ok()) << reached.message();
  EXPECT_EQ(text_of(folder.path() / "early"), "true\n");
  EXPECT_EQ(text_of(folder.path() / "late"), "true\ntrue\ntrue\n");
}

TEST(WaitForHosts, SaysWhoWasNotReachedAndWhatTheShellSaidLast) {
  const TemporaryFolder folder;
  const RemoteShell shell =
      shell_of(folder, R"([ "$1" = a ] && exit 0; echo warning; echo "$1: Connection refused" >&2; exit 255)");
  const Status reached = wait_for_hosts(shell, {"a", "b", "c"}, std::chrono::milliseconds(1200));
  EXPECT_EQ(reached.code(), Code::kInvalidArgument);
  EXPECT_EQ(reached.message(),
            "not reached within 1.2 s: host b: b: Connection refused; host c: c: Connection refused");
}

TEST(WaitForHosts, EndsAShellThatDoesNotAnswer) {
  const TemporaryFolder folder;
  const RemoteShell shell = shell_of(folder, R"(echo $$ >pid; exec sleep 1000)");
  const Status reached = wait_for_hosts(shell, {"deaf"}, std::chrono::milliseconds(500));
  EXPECT_THAT(reached.message(), HasSubstr("host deaf: the remote shell has not answered"));
  const std::string pid = text_of(folder.path() / "pid");
  EXPECT_FALSE(std::filesystem::exists("/proc/" + pid.substr(0, pid.find('\n')))) << pid;
}

TEST(WaitForHosts, FailsAtOnceWithoutARemoteShell) {
  const RemoteShell shell{.words = {"/nowhere/ssh"}, .program = "/bin/true", .directory = "/"};
  const Status reached = wait_for_hosts(shell, {"a"}, std::chrono::milliseconds(1100));
  EXPECT_THAT(reached.message(), HasSubstr("/nowhere/ssh"));
}

}  // namespace
}  // namespace syncopate::experiments

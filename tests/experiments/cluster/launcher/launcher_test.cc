#include "experiments/cluster/launcher/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace syncopate::experiments {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr int kDeadlineMs = 20'000;

class LauncherTest : public testing::Test {
 protected:
  LauncherTest() : folder_(testing::TempDir() + "launcher-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    log_ = folder_ + "/child.log";
  }
  ~LauncherTest() override { std::filesystem::remove_all(folder_); }

  // Runs `script` in a shell.
  StartedChild start(const std::string& script,
                     const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    Result<StartedChild> child = start_child({"sh", "-c", script}, environment, "child", log_);
    EXPECT_TRUE(child.ok()) << child.status().message();
    return std::move(*child);
  }

  // The status that waitpid gives once the child's handle says that it has ended.
  static int end_of(const StartedChild& child) {
    pollfd handle{child.handle.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&handle, 1, kDeadlineMs), 1);
    int status = 0;
    EXPECT_EQ(waitpid(child.pid, &status, 0), child.pid);
    return status;
  }

  std::string text_of(const std::string& file) const {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  std::string folder_;
  std::string log_;
};

TEST_F(LauncherTest, PassesOnTheEnvironmentWithAdditionsThatReplaceWhatWasThere) {
  setenv("SYNCOPATE_TEST_KEPT", "kept", 1);
  setenv("SYNCOPATE_TEST_CHANGED", "before", 1);
  end_of(start("echo $SYNCOPATE_TEST_KEPT $SYNCOPATE_TEST_CHANGED $SYNCOPATE_TEST_NEW",
               {{"SYNCOPATE_TEST_CHANGED", "after"}, {"SYNCOPATE_TEST_NEW", "new"}}));
  EXPECT_EQ(text_of(log_), "kept after new\n");
  unsetenv("SYNCOPATE_TEST_KEPT");
  unsetenv("SYNCOPATE_TEST_CHANGED");
}

TEST_F(LauncherTest, WritesOutputAndErrorsToTheLogBehindWhatIsThere) {
  std::ofstream(log_) << "before\n";
  end_of(start("echo output; echo error >&2"));
  EXPECT_EQ(text_of(log_), "before\noutput\nerror\n");
}

TEST_F(LauncherTest, ShowsTheExitCode) {
  const int status = end_of(start("exit 7"));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(LauncherTest, ShowsTheSignalThatKilledTheChild) {
  const StartedChild child = start("exec sleep 60");
  kill(child.pid, SIGKILL);
  const int status = end_of(child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(LauncherTest, GivesTheChildAProcessGroupOfItsOwn) {
  const StartedChild child = start("exec sleep 60");
  EXPECT_EQ(getpgid(child.pid), child.pid);
  EXPECT_NE(getpgid(child.pid), getpgid(0));
  kill(child.pid, SIGKILL);
  end_of(child);
}

TEST_F(LauncherTest, UnblocksSignalsThatAreBlockedHere) {
  sigset_t terminate, before;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminate, &before);
  const StartedChild child = start("exec sleep 60");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  kill(child.pid, SIGTERM);
  const int status = end_of(child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(LauncherTest, GivesTheChildNoInput) {
  const int status = end_of(start("read line"));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);  // end of file
}

TEST_F(LauncherTest, KeepsTheInputOfAChildThatHasOneOpen) {
  Result<StartedChild> child =
      start_child({"sh", "-c", "read line; echo \"$line\"; cat; echo end"}, {}, "child", log_, "secret\n");
  ASSERT_TRUE(child.ok());
  const StartedChild another = start("exec sleep 60");  // which is not to hold the first one's input open
  child->input = FileDescriptor();
  EXPECT_EQ(end_of(*child), 0);
  EXPECT_EQ(text_of(log_), "secret\nend\n");
  kill(another.pid, SIGKILL);
  end_of(another);
}

TEST_F(LauncherTest, SaysWhichProgramCannotBeStarted) {
  const Result<StartedChild> child = start_child({"/no/such/program"}, {}, "worker 1", log_);
  ASSERT_FALSE(child.ok());
  EXPECT_THAT(child.status().message(), HasSubstr("worker 1"));
  EXPECT_THAT(child.status().message(), HasSubstr("/no/such/program"));
}

TEST_F(LauncherTest, SaysWhichLogCannotBeWritten) {
  const Result<StartedChild> child = start_child({"true"}, {}, "worker 1", folder_ + "/missing/worker-1.log");
  ASSERT_FALSE(child.ok());
  EXPECT_THAT(child.status().message(), HasSubstr("/missing/worker-1.log"));
}

JobPlan two_workers() {
  ResolvedRun config;
  config.mode = Mode::kAllreduce;
  config.workers = 2;
  return make_plan(config, "run-7", "box");
}

TEST_F(LauncherTest, StartsAChildForEachProcessOfThePlan) {
  const JobPlan plan = two_workers();
  Result<std::vector<StartedChild>> children = make_local_launcher()->start(plan, {"echo", "tcp://here", folder_});
  ASSERT_TRUE(children.ok());
  ASSERT_EQ(children->size(), 3u);
  for (std::size_t i = 0; i < children->size(); ++i) {
    EXPECT_EQ((*children)[i].process, i);
    end_of((*children)[i]);
  }
  EXPECT_EQ(text_of(folder_ + "/worker-1.log"), "--role=worker --rank=1 --run=run-7 --rendezvous=tcp://here\n");
  EXPECT_EQ(text_of(folder_ + "/evaluator-0.log"), "--role=evaluator --rank=0 --run=run-7 --rendezvous=tcp://here\n");
}

TEST_F(LauncherTest, StartsProcessesOfOtherHostsThroughTheRemoteShell) {
  std::ofstream(folder_ + "/shell") << "#!/bin/sh\necho \"$1\"\nexec sh -c \"$2\"\n";
  std::filesystem::permissions(folder_ + "/shell", std::filesystem::perms::owner_all);
  ResolvedRun config;
  config.mode = Mode::kAllreduce;
  config.workers = 2;
  const Cluster cluster{.coordinator = "box",
                        .hosts = {{.name = "node1", .slots = 1, .remote = true}, {.name = "box", .slots = 1}},
                        .remote_shell = {.words = {folder_ + "/shell"}, .program = "echo", .directory = "/"}};
  Result<std::vector<StartedChild>> children = make_local_launcher()->start(
      make_plan(config, "run-7", cluster),
      {.program = "echo", .rendezvous = "tcp://here", .log_directory = folder_, .secret = SecretText("secret\n")});
  ASSERT_TRUE(children.ok()) << children.status().message();
  ASSERT_EQ(children->size(), 3u);
  for (const StartedChild& child : *children) EXPECT_EQ(end_of(child), 0);
  EXPECT_TRUE((*children)[0].is_remote_shell);
  EXPECT_FALSE((*children)[1].is_remote_shell);
  EXPECT_EQ(text_of(folder_ + "/worker-0.log"),
            "node1\n--guard echo --role=worker --rank=0 --run=run-7 --rendezvous=tcp://here\n");
  EXPECT_EQ(text_of(folder_ + "/worker-1.log"), "--role=worker --rank=1 --run=run-7 --rendezvous=tcp://here\n");
}

// Neither running nor as a zombie.
bool has_children() { return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

TEST_F(LauncherTest, LeavesNothingBehindWhereOneProcessCannotBeStarted) {
  std::filesystem::create_directory(folder_ + "/worker-1.log");
  const auto children = make_local_launcher()->start(two_workers(), {"cat", "tcp://here", folder_});
  EXPECT_THAT(children.status().message(), HasSubstr("/worker-1.log"));
  EXPECT_FALSE(has_children());
}

TEST_F(LauncherTest, LeavesNothingBehindWhereMpirunCannotBeStarted) {
  std::filesystem::create_directory(folder_ + "/mpirun.log");
  const auto children = make_mpirun_launcher()->start(two_workers(), {"cat", "tcp://here", folder_});
  EXPECT_THAT(children.status().message(), HasSubstr("/mpirun.log"));
  EXPECT_FALSE(has_children());
}

TEST(MpirunCommand, GivesEveryProcessButTheEvaluatorItsOwnRoleAndRank) {
  const std::vector<std::string> command = mpirun_command(two_workers(), {"/bin/syncopate", "tcp://here", "/logs"});
  ASSERT_EQ(command.front(), "mpirun");
  const auto processes = std::find(command.begin(), command.end(), "-n");
  EXPECT_THAT(std::vector<std::string>(processes, command.end()), ElementsAreArray({"-n",
                                                                                    "1",
                                                                                    "-x",
                                                                                    "OMP_NUM_THREADS=1",
                                                                                    "/bin/syncopate",
                                                                                    "--role=worker",
                                                                                    "--rank=0",
                                                                                    "--run=run-7",
                                                                                    "--keys-shared",
                                                                                    "--rendezvous=tcp://here",
                                                                                    ":",  //
                                                                                    "-n",
                                                                                    "1",
                                                                                    "-x",
                                                                                    "OMP_NUM_THREADS=1",
                                                                                    "/bin/syncopate",
                                                                                    "--role=worker",
                                                                                    "--rank=1",
                                                                                    "--run=run-7",
                                                                                    "--keys-shared",
                                                                                    "--rendezvous=tcp://here"}));
}

TEST(MpirunCommand, PassesMoreOptionsOnInFrontOfAllProcesses) {
  JobPlan plan = two_workers();
  plan.mpi_options = {"--mca", "btl", "self,tcp"};
  const std::vector<std::string> command = mpirun_command(plan, {"/bin/syncopate", "tcp://here", "/logs"});
  const auto first = std::ranges::find(command, "-n");
  EXPECT_THAT(std::vector<std::string>(first - 3, first), testing::ElementsAre("--mca", "btl", "self,tcp"));
  EXPECT_EQ(std::ranges::count(command, "self,tcp"), 1);
}

TEST(MpirunCommand, PutsEachProcessOnItsHostAndTheAgentInThePlaceOfSsh) {
  ResolvedRun config;
  config.mode = Mode::kAllreduce;
  config.workers = 2;
  const JobPlan plan = make_plan(config, "run-7",
                                 {.coordinator = "box",
                                  .hosts = {{.name = "node1", .slots = 1, .remote = true}, {.name = "box", .slots = 1}},
                                  .remote_shell = {.words = {"ssh"}, .program = "/there/syncopate", .directory = "/"}});
  const std::vector<std::string> command = mpirun_command(plan, {"/bin/syncopate", "tcp://here", "/logs"});
  const auto agent = std::ranges::find(command, "plm_rsh_agent");
  ASSERT_NE(agent, command.end());
  EXPECT_EQ(*(agent + 1), "/bin/syncopate --mpirun-agent");
  const auto processes = std::ranges::find(command, "-n");
  EXPECT_THAT(std::vector<std::string>(processes, command.end()), ElementsAreArray({"-n",
                                                                                    "1",
                                                                                    "--host",
                                                                                    "node1",
                                                                                    "-x",
                                                                                    "OMP_NUM_THREADS=1",
                                                                                    "/there/syncopate",
                                                                                    "--role=worker",
                                                                                    "--rank=0",
                                                                                    "--run=run-7",
                                                                                    "--keys-shared",
                                                                                    "--rendezvous=tcp://here",
                                                                                    ":",  //
                                                                                    "-n",
                                                                                    "1",
                                                                                    "--host",
                                                                                    "localhost",
                                                                                    "-x",
                                                                                    "OMP_NUM_THREADS=1",
                                                                                    "/bin/syncopate",
                                                                                    "--role=worker",
                                                                                    "--rank=1",
                                                                                    "--run=run-7",
                                                                                    "--keys-shared",
                                                                                    "--rendezvous=tcp://here"}));
}

// Sets Open MPI's variables, and puts back what they were.
class RootAllowed {
 public:
  RootAllowed(const char* once, const char* twice) { set({once, twice}); }
  ~RootAllowed() { set({before_[0] ? before_[0]->c_str() : nullptr, before_[1] ? before_[1]->c_str() : nullptr}); }

 private:
  static constexpr std::array kNames{"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"};
  static std::optional<std::string> get(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  static void set(const std::array<const char*, 2>& values) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (values[i] != nullptr) {
        setenv(kNames[i], values[i], 1);
      } else {
        unsetenv(kNames[i]);
      }
    }
  }

  const std::array<std::optional<std::string>, 2> before_{get(kNames[0]), get(kNames[1])};
};

TEST(MpirunCommand, LeavesItToOpenMpiWhetherRootMay) {
  EXPECT_THAT(mpirun_command(two_workers(), {"/bin/syncopate", "tcp://here", "/logs"}),
              testing::Not(testing::Contains("--allow-run-as-root")));
}

TEST(Mpirun, IsForRootOnlyIfRootHasSaidSoTwice) {
  constexpr uid_t kRoot = 0, kSomebody = 1000;
  {
    const RootAllowed not_at_all(nullptr, nullptr);
    EXPECT_TRUE(check_mpirun_allows(kSomebody).ok());
    EXPECT_EQ(check_mpirun_allows(kRoot).code(), Code::kInvalidArgument);
    EXPECT_THAT(check_mpirun_allows(kRoot).message(), testing::HasSubstr("and OMPI_ALLOW_RUN_AS_ROOT is not"));
  }
  {
    const RootAllowed once("1", nullptr);
    EXPECT_THAT(check_mpirun_allows(kRoot).message(), testing::HasSubstr("and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM is not"));
  }
  {
    const RootAllowed with_a_no("1", "0");
    EXPECT_FALSE(check_mpirun_allows(kRoot).ok());
  }
  const RootAllowed twice("1", "1");
  EXPECT_TRUE(check_mpirun_allows(kRoot).ok());
}

// How Python ends a process whose exception has one line, or several.
TEST_F(LauncherTest, SaysWhatPythonHasRaisedAndItsLastLine) {
  const std::string traceback = "Traceback (most recent call last):\n  File \"train.py\", line 3\n    load()\n";
  const auto words = [this](const std::string& text) {
    std::ofstream(log_) << text;
    return last_words_of(log_);
  };
  EXPECT_EQ(words("step 3\n" + traceback + "ValueError: no data\n"), "ValueError: no data (" + log_ + ")");
  EXPECT_EQ(words(traceback + "KeyError: 'a'\n\nDuring handling, another exception occurred:\n\n" + traceback +
                  "LoadError: it failed\n  (1) first\nsee the documentation\n"),
            "LoadError: it failed ... see the documentation (" + log_ + ")");
  EXPECT_EQ(words("step 3\nstep 4\n---\n"), "step 4 (" + log_ + ")");
  EXPECT_EQ(words(""), "it printed nothing (" + log_ + ")");
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/cluster/coordinator/process_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/clock.h"

namespace syncopate::experiments {
namespace {

using EndedChild = EndedChild;

constexpr Duration kDeadline = std::chrono::seconds(20);
constexpr const char* kSleep = "exec sleep 60";

class ProcessTableTest : public testing::Test {
 protected:
  ProcessTableTest() : folder_(testing::TempDir() + "processes-XXXXXX") { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~ProcessTableTest() override { std::filesystem::remove_all(folder_); }

  // A shell that stands for `process` of the plan, or carries what it starts itself.
  StartedChild start(const std::string& script, std::optional<std::size_t> process) {
    const std::string name = process ? "worker " + std::to_string(*process) : "carrier";
    Result<StartedChild> child = start_child({"sh", "-c", script}, {}, name, folder_ + "/" + name + ".log");
    EXPECT_TRUE(child.ok()) << child.status().message();
    child->process = process;
    return std::move(*child);
  }

  template <typename... Children>
  static std::vector<StartedChild> all_of(Children... children) {
    std::vector<StartedChild> all;
    (all.push_back(std::move(children)), ...);
    return all;
  }

  // Waits until `count` have ended, and takes them.
  static std::vector<EndedChild> wait_for(ProcessTable& table, std::size_t count) {
    std::vector<EndedChild> ended;
    const TimePoint deadline = SteadyClock().now() + kDeadline;
    while (ended.size() < count && SteadyClock().now() < deadline) {
      pollfd item{.fd = table.handle(), .events = POLLIN, .revents = 0};
      poll(&item, 1, 1000);
      for (EndedChild& one : table.take_ended()) ended.push_back(std::move(one));
    }
    EXPECT_EQ(ended.size(), count);
    ended.resize(count);
    return ended;
  }

  // The number that a script writes to `file`, once it has.
  pid_t pid_in(const std::string& file) const {
    const TimePoint deadline = SteadyClock().now() + kDeadline;
    while (SteadyClock().now() < deadline) {
      pid_t pid = 0;
      std::string end;
      if (std::ifstream(folder_ + "/" + file) >> pid >> end && end == "end") return pid;
      usleep(1000);
    }
    ADD_FAILURE() << file << " was not written";
    return 0;
  }

  static bool lives(pid_t pid) { return kill(pid, 0) == 0; }

  std::string folder_;
};

// The ends of remote shells that say so: of the process, where they know it.
TEST_F(ProcessTableTest, TellsWhatARemoteShellSaysOfTheProcessBehindIt) {
  std::vector<StartedChild> shells = all_of(start("exit 0", 0), start("exit 3", 1), start("exit 137", 2),
                                            start("exit 255", 3), start("kill -9 $$", 4));
  for (StartedChild& shell : shells) shell.is_remote_shell = true;
  ProcessTable table(5, std::move(shells));
  std::vector<ProcessEnd> ends(5);
  for (const EndedChild& one : wait_for(table, 5)) ends[*one.process] = one.end;
  EXPECT_EQ(ends[0].exit_code, 0);
  EXPECT_EQ(ends[1].exit_code, 3);
  EXPECT_EQ(ends[2].signal, SIGKILL);
  for (int process : {0, 1, 2}) EXPECT_FALSE(ends[static_cast<std::size_t>(process)].of_remote_shell);
  EXPECT_TRUE(ends[3].of_remote_shell);
  EXPECT_EQ(ends[3].exit_code, 255);
  EXPECT_TRUE(ends[4].of_remote_shell);
  EXPECT_EQ(ends[4].signal, SIGKILL);
}

// Whatever hangs on it elsewhere.
TEST_F(ProcessTableTest, ClosesTheInputOfWhatItKills) {
  Result<StartedChild> child = start_child({"sh", "-c",
                                            "exec 3<&0; (cat <&3; echo \"$$ end\" > " + folder_ +
                                                "/pid) & echo \"1 end\" > " + folder_ + "/ready; " + kSleep},
                                           {}, "shell", folder_ + "/shell.log", "secret\n");
  ASSERT_TRUE(child.ok());
  child->process = 0;
  ProcessTable table(1, all_of(std::move(*child)));
  ASSERT_NE(pid_in("ready"), 0);
  table.kill_process(0);
  EXPECT_EQ(wait_for(table, 1)[0].end.signal, SIGKILL);
  EXPECT_NE(pid_in("pid"), 0);
}

TEST_F(ProcessTableTest, TellsHowAChildHasEndedOnce) {
  ProcessTable table(2, all_of(start("exit 3", 0), start(kSleep, 1)));
  const EndedChild exited = wait_for(table, 1)[0];
  EXPECT_EQ(exited.process, 0);
  EXPECT_EQ(exited.end.exit_code, 3);
  EXPECT_TRUE(table.take_ended().empty());

  table.kill_process(1);
  const EndedChild killed = wait_for(table, 1)[0];
  EXPECT_EQ(killed.process, 1);
  EXPECT_EQ(killed.end.signal, SIGKILL);
  EXPECT_TRUE(table.empty());
}

TEST_F(ProcessTableTest, EndsWhatIsWithinAChildWithIt) {
  StartedChild worker = start(kSleep, 2), other = start(kSleep, 1);
  const pid_t pid = worker.pid;
  worker.within = {0};
  ProcessTable table(3, all_of(std::move(other), std::move(worker)));
  EXPECT_TRUE(table.carried().empty());
  EXPECT_EQ(table.pid_of_child(0), pid);
  EXPECT_EQ(table.signal_process(0, SIGSTOP), pid);
  EXPECT_EQ(table.signal_process(0, SIGCONT), pid);
  table.kill_process(0);
  const std::vector<EndedChild> ended = wait_for(table, 2);
  EXPECT_EQ(ended[0].process, 2);
  EXPECT_EQ(ended[1].process, 0);
  EXPECT_EQ(ended[1].end.signal, SIGKILL);
  EXPECT_FALSE(table.pid_of_child(0));
  EXPECT_FALSE(table.empty()) << "the other process lives";
}

TEST_F(ProcessTableTest, LeavesNothingAliveBehind) {
  StartedChild child = start(kSleep, 0);
  const pid_t pid = child.pid;
  { ProcessTable table(1, all_of(std::move(child))); }
  EXPECT_FALSE(lives(pid));
}

// Whatever a process says: what was not started by this run is not watched, and so never killed.
TEST_F(ProcessTableTest, WatchesNoProcessThatNoneOfItsChildrenHasStarted) {
  StartedChild decoy = start(kSleep, std::nullopt);
  {
    ProcessTable table(1, all_of(start(kSleep, std::nullopt)));
    for (const pid_t pid : {decoy.pid, getpid(), pid_t{1}, pid_t{0}, pid_t{-1}}) {
      EXPECT_FALSE(table.watch_carried(0, pid)) << pid;
    }
  }
  EXPECT_TRUE(lives(decoy.pid));
  end_child(decoy);
  reap(decoy);
}

TEST_F(ProcessTableTest, WatchesAndKillsACarriedProcessOnceItIsKnown) {
  ProcessTable table(1, all_of(start("sleep 60 & echo $! end > " + folder_ + "/pid; wait; exit 0", std::nullopt)));
  EXPECT_TRUE(table.is_carried(0));
  EXPECT_TRUE(table.watch_carried(0, pid_in("pid")));
  table.kill_process(0);
  const std::vector<EndedChild> ended = wait_for(table, 2);
  EXPECT_EQ(ended[0].process, 0);
  EXPECT_EQ(ended[0].end.signal, std::nullopt);  // only its parent can know
  EXPECT_EQ(ended[1].process, std::nullopt);
  EXPECT_EQ(ended[1].name, "carrier");
  EXPECT_EQ(ended[1].end.exit_code, 0);
}

TEST_F(ProcessTableTest, KillsTheCarrierOfAProcessThatIsNotKnownYet) {
  ProcessTable table(1, all_of(start(kSleep, std::nullopt)));
  table.kill_process(0);
  const EndedChild ended = wait_for(table, 1)[0];
  EXPECT_EQ(ended.process, std::nullopt);
  EXPECT_EQ(ended.end.signal, SIGKILL);
}

}  // namespace
}  // namespace syncopate::experiments

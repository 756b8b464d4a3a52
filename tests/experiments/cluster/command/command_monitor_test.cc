#include "experiments/cluster/command/command_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kBegin{100s};
const ProcessEnd kWell{.exit_code = 0, .signal = {}};
const ProcessEnd kKilled{.exit_code = {}, .signal = SIGKILL};

ProcessEnd failed_with(int code, const std::string& last_words) {
  return {.exit_code = code, .signal = {}, .last_words = last_words};
}

TEST(CommandMonitor, IsOverWithoutAVerdictWhenAllHaveEndedWell) {
  CommandMonitor monitor({.workers = 2, .patience = 10s});
  monitor.on_end(1, kWell, kBegin);
  EXPECT_FALSE(monitor.is_over());
  EXPECT_FALSE(monitor.must_kill(kBegin + 3600s)) << "one that has ended early hurries nobody";
  monitor.on_end(0, kWell, kBegin + 5s);
  EXPECT_TRUE(monitor.is_over());
  EXPECT_FALSE(monitor.verdict());
}

TEST(CommandMonitor, GivesTheOthersTimeAfterAFailure) {
  CommandMonitor monitor({.workers = 3, .patience = 10s});
  monitor.on_end(2, kKilled, kBegin);
  EXPECT_FALSE(monitor.must_kill(kBegin + 9s));
  EXPECT_TRUE(monitor.must_kill(kBegin + 10s));
  EXPECT_EQ(monitor.verdict()->code, ExitCode::kProcessLost);
  EXPECT_EQ(monitor.verdict()->line, "worker 2 was killed by signal 9 (Killed)");
}

TEST(CommandMonitor, NamesTheHostOfAWorkerThatIsOnAnother) {
  CommandMonitor monitor({.workers = 2, .patience = 10s, .hosts = {{1, "node2"}}});
  monitor.on_end(1, {.exit_code = 255, .signal = {}, .of_remote_shell = true}, kBegin);
  EXPECT_EQ(monitor.verdict()->line, "worker 1 (host node2) lost its remote shell, which ended with exit code 255");
}

TEST(CommandMonitor, NamesTheOneThatFailedAndNotThoseThatLostIt) {
  CommandMonitor monitor({.workers = 3, .patience = 10s});
  monitor.on_end(0, failed_with(1, "syncopate.errors.PeerLost: rank 1 (pid 7 on box) is gone"), kBegin);
  EXPECT_THAT(monitor.verdict()->line, StartsWith("worker 0 ")) << "until more is known";
  monitor.on_end(1, failed_with(1, "ValueError: too many"), kBegin);
  monitor.on_end(2, failed_with(1, "syncopate.errors.PeerLost: rank 1 (pid 7 on box) is gone"), kBegin);
  EXPECT_THAT(monitor.verdict()->line, StartsWith("worker 1 "));
  EXPECT_THAT(monitor.verdict()->line, HasSubstr("ValueError: too many"));
}

TEST(CommandMonitor, KeepsTheFirstFailureWhereSeveralHaveFailedOfThemselves) {
  CommandMonitor monitor({.workers = 2, .patience = 10s});
  monitor.on_end(1, failed_with(3, "first"), kBegin);
  monitor.on_end(0, failed_with(4, "second"), kBegin + 1s);
  EXPECT_THAT(monitor.verdict()->line, HasSubstr("first"));
}

TEST(CommandMonitor, DoesNotBlameThoseThatItHadKilled) {
  CommandMonitor monitor({.workers = 2, .patience = 10s});
  monitor.on_end(0, failed_with(1, "PeerLost: rank 1 is gone"), kBegin);
  monitor.on_end(1, kKilled, kBegin + 10s);
  EXPECT_THAT(monitor.verdict()->line, StartsWith("worker 0 "));
}

TEST(CommandMonitor, SaysOfAProgramThatDoesNotStartThatItIsTheUsersToMend) {
  CommandMonitor monitor({.workers = 2, .patience = 10s});
  monitor.on_end(0, failed_with(127, "cannot start pyhton: No such file or directory"), kBegin);
  EXPECT_EQ(monitor.verdict()->code, ExitCode::kUsage);
  EXPECT_THAT(monitor.verdict()->line, HasSubstr("cannot start pyhton"));
}

TEST(CommandMonitor, LetsAnInterruptedRunWriteForFiveSeconds) {
  CommandMonitor monitor({.workers = 1, .patience = 60s});
  monitor.on_interrupt(kBegin);
  EXPECT_FALSE(monitor.must_kill(kBegin + 4s));
  EXPECT_TRUE(monitor.must_kill(kBegin + 5s));
  monitor.on_end(0, {.exit_code = {}, .signal = SIGTERM}, kBegin + 1s);
  EXPECT_EQ(monitor.verdict()->code, ExitCode::kInterrupted) << "not: worker 0 was killed";
}

TEST(CommandMonitor, EndsARunWhoseResultsCannotBeWrittenAtOnce) {
  CommandMonitor monitor({.workers = 1, .patience = 60s});
  monitor.on_failure(Status::resource_exhausted("steps.csv: no space left"), kBegin);
  EXPECT_TRUE(monitor.must_kill(kBegin));
  monitor.on_end(0, kKilled, kBegin);
  EXPECT_EQ(monitor.verdict()->line, "steps.csv: no space left");
}

TEST(CommandMonitor, LetsTheOthersOfAnElasticRunGoOn) {
  CommandMonitor monitor({.workers = 3, .patience = 10s, .is_elastic = true});
  EXPECT_EQ(monitor.on_end(1, kKilled, kBegin), "worker 1 was killed by signal 9 (Killed); the others go on");
  EXPECT_FALSE(monitor.must_kill(kBegin + 3600s));
  EXPECT_FALSE(monitor.on_end(0, kWell, kBegin + 5s));
  EXPECT_FALSE(monitor.must_kill(kBegin + 14s));
  EXPECT_TRUE(monitor.must_kill(kBegin + 15s)) << "one that stands still, and that nobody waits for";
  EXPECT_THAT(monitor.on_end(2, kKilled, kBegin + 15s).value_or(""), StartsWith("worker 2 was killed: the others had"));
  EXPECT_TRUE(monitor.is_over());
  EXPECT_FALSE(monitor.verdict());
}

TEST(CommandMonitor, NamesTheLossThatWorker0OfAnElasticRunCouldNotGoOnWithout) {
  CommandMonitor monitor({.workers = 3, .patience = 10s, .is_elastic = true});
  monitor.on_end(2, kKilled, kBegin);
  monitor.on_end(0, failed_with(1, "syncopate.errors.PeerLost: rank 2 (pid 7 on box) is gone"), kBegin);
  EXPECT_EQ(monitor.verdict()->line, "worker 2 was killed by signal 9 (Killed)");
  EXPECT_TRUE(monitor.must_kill(kBegin + 10s));
}

TEST(CommandMonitor, EndsAnElasticRunWithWorker0OrWithoutAProgram) {
  CommandMonitor lost({.workers = 2, .patience = 10s, .is_elastic = true});
  lost.on_end(0, kKilled, kBegin);
  EXPECT_EQ(lost.verdict()->code, ExitCode::kProcessLost);
  CommandMonitor missing({.workers = 2, .patience = 10s, .is_elastic = true});
  missing.on_end(1, failed_with(127, "no such program"), kBegin);
  EXPECT_EQ(missing.verdict()->code, ExitCode::kUsage);
}

}  // namespace
}  // namespace syncopate::experiments

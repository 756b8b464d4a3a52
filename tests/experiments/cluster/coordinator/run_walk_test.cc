// RunMonitor in runs in which anything may happen at any moment. What is impossible by its tables is an assertion, so
// that a build with assertions finds what these walks bring about all the same.
#include <gtest/gtest.h>

#include <random>

#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""s;

// Does something at random to a run, as its processes, its machine or its user might.
class RandomEvents {
 public:
  RandomEvents(WatchedRun& run, unsigned seed, std::size_t processes)
      : run_(run), random_(seed), processes_(processes), launched_(processes, true) {}

  void next() {
    const std::size_t process = below(processes_);
    RunMonitor& monitor = run_.monitor();
    switch (below(20)) {
      case 0:
        return launched_[process] ? run_.hello(process) : void();
      case 1:
      case 2:
        return run_.ready(process);
      case 3:
      case 4:
        return run_.join(process);
      case 5:
        return run_.trouble(process, monitor.membership().number);
      case 6:
      case 7:
        return is_worker(process) ? run_.step(process) : void();
      case 8:
        return is_worker(process) && below(4) == 0 ? monitor.on_leaving(process) : void();
      case 9:
        return is_worker(process) && below(8) == 0 ? monitor.on_training_over(process, run_.now()) : void();
      case 10:
        return run_.finish(process);
      case 11:
        return run_.fail(process, below(4) == 0 ? Status::data_loss("labels of 12") : kPeerIsLost);
      case 12:
      case 13:
        return end(process, below(3) == 0 ? kGoodEnd : kKilled);
      case 14:
        return monitor.on_missing(process, monitor.membership().number, static_cast<int>(below(3)), kTimeout,
                                  run_.now());
      case 15:
        monitor.on_snapshot(static_cast<std::int64_t>(below(3)), below(8) == 0, 1000);
        return (void)monitor.wants_snapshots();
      case 16:
        return (void)monitor.on_evaluation(static_cast<std::int64_t>(below(3)), below(8) == 0, run_.now());
      case 17:
        return run_.let_pass(below(50) == 0 ? 20s : 0s);
      case 18:
        return below(100) == 0 ? monitor.on_interrupt(run_.now()) : monitor.on_checkpoint("checkpoints/step-000100");
      default:
        return run_.pass(kTick * (1 + static_cast<int>(below(20))), process);
    }
  }
  // Carries out what concerns processes.
  void act() {
    for (const MonitorAction& action : run_.monitor().take_actions()) {
      if (const auto* restart = std::get_if<RestartProcess>(&action)) launched_[restart->process] = true;
      if (const auto* kill = std::get_if<KillProcess>(&action)) {
        if (launched_[kill->process]) doomed_.push_back(kill->process);
      }
    }
    while (!doomed_.empty() && below(2) == 0) {
      end(doomed_.back(), kKilled);
      doomed_.pop_back();
    }
  }
  // All end, as they have been asked to.
  void end_all() {
    for (std::size_t i = 0; i < processes_; ++i) end(i, kGoodEnd);
  }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  bool is_worker(std::size_t process) const { return process == run_.worker(0) || process == run_.worker(1); }
  void end(std::size_t process, const ProcessEnd& how) {
    if (!launched_[process]) return;
    launched_[process] = false;
    run_.end(process, how);
  }

  WatchedRun& run_;
  std::mt19937 random_;
  const std::size_t processes_;
  std::vector<bool> launched_;
  std::vector<std::size_t> doomed_;  // killed, and not ended yet
};

// Returns the number of runs that have come to their end.
int walk(const JobPlan& plan, const Recovery& recovery) {
  int ended = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    WatchedRun run(plan, {.recovery = recovery, .timeout = kTimeout});
    RandomEvents events(run, seed, plan.processes.size());
    run.everybody_says_hello();
    if (seed % 2 == 0) {
      for (const int rank : {0, 1}) run.ready(run.worker(rank));
    }
    for (int event = 0; event < 300 && !run.monitor().over(); ++event) {
      const RunPhase before = run.monitor().phase();
      const std::optional<ExitCode> verdict = run.verdict();
      events.next();
      EXPECT_EQ(is_stopping(before) && !run.monitor().stopping(), false) << "seed " << seed;
      EXPECT_FALSE(training_has_begun(before) && !training_has_begun(run.monitor().phase())) << "seed " << seed;
      if (verdict) {
        EXPECT_EQ(run.verdict(), verdict) << "seed " << seed;
      }
      events.act();
    }
    ended += run.monitor().stopping() ? 1 : 0;
    if (!run.monitor().stopping()) run.monitor().on_interrupt(run.now());
    events.end_all();
    EXPECT_TRUE(run.monitor().over()) << "seed " << seed;
  }
  return ended;
}

TEST(RunMonitorWalks, WhereEveryProcessIsNeeded) { EXPECT_GT(walk(plan_of(Mode::kPs, 2, 2), {}), 100); }

TEST(RunMonitorWalks, WhereWorkersRegroupAndComeBack) {
  EXPECT_GT(walk(plan_of(Mode::kAllreduce, 2, 0),
                 {.survives_workers = true, .regroups_without_worker = true, .respawn_after = 1s}),
            100);
}

TEST(RunMonitorWalks, WhereServersGoBackAndComeBack) {
  for (const int replicas : {0, 1}) {
    EXPECT_GT(walk(plan_of(Mode::kPs, 2, 2, replicas),
                   {.survives_workers = true, .has_standbys = replicas > 0, .goes_back = true, .respawn_after = 1s}),
              100);
  }
}

}  // namespace
}  // namespace syncopate::experiments

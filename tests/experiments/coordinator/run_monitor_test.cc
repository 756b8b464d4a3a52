#include "experiments/coordinator/run_monitor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr Duration kTimeout = 10s;
const ProcessEnd kGoodEnd{.exit_code = 0, .signal = {}};
const ProcessEnd kFailedEnd{.exit_code = 1, .signal = {}};
const ProcessEnd kKilled{.exit_code = {}, .signal = SIGKILL};
const Status kPeerIsLost(Code::kPeerLost, "rank 1 is gone");
const Status kNobodyAnswers(Code::kDeadlineExceeded, "no answer from shard 0 (server 0) for 10 s");

JobPlan plan_of(Mode mode, int workers, int servers) {
  RunConfig config;
  config.mode = mode;
  config.workers = workers;
  config.servers = servers;
  return make_plan(config, "run-7", "box");
}

// A run that a test tells what happens, and whose actions it reads as text: "stop: REASON", "kill worker 0",
// "lost 1", "release", "report: TEXT".
class WatchedRun {
 public:
  WatchedRun(JobPlan plan, bool survives)
      : plan_(std::move(plan)),
        monitor_(plan_, {.survives_worker_loss = survives, .timeout = kTimeout}, clock_.now()) {}

  RunMonitor& monitor() { return monitor_; }
  TimePoint now() const { return clock_.now(); }
  std::size_t evaluator() const { return plan_.processes.size() - 1; }
  std::size_t worker(int rank) const { return index_of(Role::kWorker, rank); }
  std::size_t server(int rank) const { return index_of(Role::kServer, rank); }

  void hello(std::size_t process) { monitor_.on_hello(process, 100 + static_cast<int>(process), "box", now()); }
  void everybody_says_hello() {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) hello(i);
  }
  void heartbeats_of_all_but(std::optional<std::size_t> silent) {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (i != silent && monitor_.still_there(i)) monitor_.on_heartbeat(i, "training", 7, now());
    }
  }
  void ready(std::size_t process) { monitor_.on_ready_to_train(process, now()); }
  void finish(std::size_t process) { monitor_.on_finished(process, now()); }
  void fail(std::size_t process, const Status& status) { monitor_.on_failure(process, status, "training", 7, now()); }
  void end(std::size_t process, const ProcessEnd& how) { monitor_.on_end(process, how, now()); }
  void carrier_ends(const ProcessEnd& how) {
    std::vector<std::size_t> carried;
    for (std::size_t i = 0; i < evaluator(); ++i) carried.push_back(i);
    monitor_.on_carrier_end(carried, how, "mpirun", "its last line (mpirun.log)", now());
  }
  // Time passes in ticks of 100 ms; everybody but `silent` is heard meanwhile.
  void pass(Duration time, std::optional<std::size_t> silent = std::nullopt) {
    for (Duration passed{}; passed < time; passed += 100ms) {
      clock_.advance(100ms);
      heartbeats_of_all_but(silent);
      monitor_.on_tick(now());
    }
  }

  std::vector<std::string> actions() {
    std::vector<std::string> texts;
    for (const MonitorAction& action : monitor_.take_actions()) texts.push_back(text_of(action));
    return texts;
  }
  std::optional<ExitCode> verdict() const {
    return monitor_.verdict() ? std::optional(monitor_.verdict()->code) : std::nullopt;
  }
  std::string line() const { return monitor_.verdict() ? monitor_.verdict()->line : "no verdict"; }

 private:
  std::size_t index_of(Role role, int rank) const {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].role == role && plan_.processes[i].rank == rank) return i;
    }
    ADD_FAILURE() << "no such process";
    return 0;
  }
  std::string text_of(const MonitorAction& action) const {
    switch (action.kind) {
      case MonitorAction::Kind::kStopAll:
        return "stop: " + action.text;
      case MonitorAction::Kind::kKill:
        return "kill " + plan_.processes[action.process].name();
      case MonitorAction::Kind::kWorkerLost:
        return fmt::format("lost {}", action.rank);
      case MonitorAction::Kind::kReleaseTraining:
        return "release";
      case MonitorAction::Kind::kReport:
        return "report: " + action.text;
    }
    return "";
  }

  ManualClock clock_;
  const JobPlan plan_;
  RunMonitor monitor_;
};

// Two workers, two servers, an evaluator, all there.
class PsRun : public WatchedRun {
 public:
  explicit PsRun(bool survives, int workers = 2) : WatchedRun(plan_of(Mode::kPs, workers, 2), survives) {
    everybody_says_hello();
  }
};

class AllreduceRun : public WatchedRun {
 public:
  AllreduceRun() : WatchedRun(plan_of(Mode::kAllreduce, 2, 0), false) { everybody_says_hello(); }
};

// How runs end in order.

TEST(RunMonitor, StopsInSuccessOnceWorkersServersAndEvaluationsAreDone) {
  PsRun run(false);
  run.monitor().on_snapshot_sent_to_evaluator();
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  EXPECT_THAT(run.actions(), IsEmpty());
  for (int rank : {0, 1}) run.finish(run.server(rank));
  EXPECT_THAT(run.actions(), IsEmpty());
  run.monitor().on_evaluation(run.now());
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));

  run.finish(run.evaluator());
  for (std::size_t i = 0; i <= run.evaluator(); ++i) {
    EXPECT_FALSE(run.monitor().over());
    run.end(i, kGoodEnd);
  }
  EXPECT_TRUE(run.monitor().over());
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, TakesAProcessThatEndsAfterItHasFinishedAsItShould) {
  AllreduceRun run;
  run.finish(run.worker(0));
  run.end(run.worker(0), kGoodEnd);
  run.pass(5s);
  EXPECT_THAT(run.actions(), IsEmpty());
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, TakesTheEndOfAFinishedProcessThatOnlyItsParentKnowsTheStatusOf) {
  AllreduceRun run;
  run.finish(run.worker(0));
  run.end(run.worker(0), {});
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, KillsWhoHasNotEndedWithinThePatienceOfAStop) {
  AllreduceRun run;
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  ASSERT_THAT(run.actions(), ElementsAre("stop: "));
  run.end(run.worker(0), kGoodEnd);
  run.pass(4900ms);
  EXPECT_THAT(run.actions(), IsEmpty());
  run.pass(100ms);
  EXPECT_THAT(run.actions(), ElementsAre("kill worker 1", "kill evaluator"));
  run.pass(10s);
  EXPECT_THAT(run.actions(), IsEmpty());  // once
}

TEST(RunMonitor, NamesTheServerThatDoesNotFinishAfterAllWorkers) {
  PsRun run(false);
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  run.finish(run.server(0));
  run.pass(kTimeout);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("server 1 (host box, pid 101; training at step 7"));
  EXPECT_THAT(run.line(), EndsWith("has not finished, 10 s after all workers"));
}

TEST(RunMonitor, GivesTheEvaluatorTheTimeoutForEachSnapshotThatIsLeft) {
  AllreduceRun run;
  for (int i = 0; i < 3; ++i) run.monitor().on_snapshot_sent_to_evaluator();
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  for (int i = 0; i < 2; ++i) {
    run.pass(9s);
    run.monitor().on_evaluation(run.now());
  }
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.pass(kTimeout);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("evaluator (host box"));
}

TEST(RunMonitor, DoesNotWaitForeverForSnapshotsThatNobodyEvaluates) {
  AllreduceRun run;
  run.monitor().on_snapshot_sent_to_evaluator();
  for (std::size_t process : {run.worker(0), run.worker(1), run.evaluator()}) run.finish(process);
  run.pass(kTimeout);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("1 snapshots have not been evaluated"));
}

// Processes that end before their time.

TEST(RunMonitor, NamesAKilledWorkerWhereEveryWorkerIsNeeded) {
  AllreduceRun run;
  run.pass(2s);
  run.end(run.worker(1), kKilled);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_EQ(run.line(),
            "worker 1 (host box, pid 101; training at step 7, last heard 0.0 s ago) was killed by signal 9 (Killed); "
            "this mode needs every worker");
  EXPECT_THAT(run.actions(), ElementsAre("stop: " + run.line()));
}

TEST(RunMonitor, GoesOnWithoutAKilledWorkerWhereTheModeSurvivesIt) {
  PsRun run(true, 3);
  run.end(run.worker(1), kKilled);
  EXPECT_EQ(run.verdict(), std::nullopt);
  EXPECT_THAT(run.actions(), ElementsAre(AllOf(StartsWith("report: worker 1 (host box"),
                                               EndsWith("was killed by signal 9 (Killed); 2 workers go on")),
                                         "lost 1"));
  run.end(run.worker(0), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("; 1 worker goes on"), "lost 0"));
}

TEST(RunMonitor, EndsWithTheLastWorker) {
  PsRun run(true);
  run.end(run.worker(1), kKilled);
  run.end(run.worker(0), kKilled);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), StartsWith("worker 0 "));
}

TEST(RunMonitor, FinishesInSuccessWithoutTheWorkerThatWasLost) {
  PsRun run(true);
  run.end(run.worker(1), kKilled);
  run.actions();
  for (std::size_t process : {run.worker(0), run.server(0), run.server(1)}) run.finish(process);
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, FinishesWhenTheWorkerThatEverybodyWaitedForIsLost) {
  PsRun run(true);
  for (std::size_t process : {run.worker(0), run.server(0), run.server(1)}) run.finish(process);
  run.actions();
  run.end(run.worker(1), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(StartsWith("report: worker 1"), "lost 1", "stop: "));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, SurvivesTheLossOfNeitherServerNorEvaluator) {
  for (const bool server : {true, false}) {
    PsRun run(true);
    run.end(server ? run.server(1) : run.evaluator(), kKilled);
    EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
    EXPECT_THAT(run.line(), StartsWith(server ? "server 1 " : "evaluator "));
    EXPECT_THAT(run.line(), EndsWith("was killed by signal 9 (Killed)"));
  }
}

TEST(RunMonitor, TakesAnEndWithoutHavingFinishedForALossEvenWithExitCodeZero) {
  AllreduceRun run;
  run.end(run.worker(1), kGoodEnd);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), HasSubstr("ended with exit code 0"));
}

TEST(RunMonitor, TakesACrashAfterHavingFinishedForALoss) {
  AllreduceRun run;
  run.finish(run.worker(1));
  run.end(run.worker(1), {.exit_code = {}, .signal = SIGSEGV});
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), HasSubstr("killed by signal 11"));
}

TEST(RunMonitor, IsNotMovedByWordsThatComeAfterTheEnd) {
  PsRun run(true);
  run.end(run.worker(1), kKilled);
  run.actions();
  run.fail(run.worker(1), Status(Code::kInternal, "late"));
  run.finish(run.worker(1));
  EXPECT_THAT(run.actions(), IsEmpty());
  EXPECT_EQ(run.verdict(), std::nullopt);
  for (std::size_t process : {run.worker(0), run.server(0), run.server(1), run.evaluator()}) {
    run.finish(process);
    run.end(process, kGoodEnd);
  }
  EXPECT_TRUE(run.monitor().over());
}

// Silence.

TEST(RunMonitor, KillsAndNamesWhoIsSilentForHalfTheTimeout) {
  AllreduceRun run;
  run.pass(4900ms, run.worker(1));
  EXPECT_THAT(run.actions(), IsEmpty());
  run.pass(100ms, run.worker(1));
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_EQ(run.line(),
            "worker 1 (host box, pid 101; starting at step 0, last heard 5.0 s ago) has stopped answering; this mode "
            "needs every worker");
  EXPECT_THAT(run.actions(), ElementsAre("kill worker 1", StartsWith("stop: worker 1")));
}

TEST(RunMonitor, GoesOnWithoutASilentWorkerWhereTheModeSurvivesIt) {
  PsRun run(true);
  run.pass(5s, run.worker(0));
  EXPECT_THAT(run.actions(), ElementsAre("kill worker 0", StartsWith("report: worker 0"), "lost 0"));
  run.end(run.worker(0), kKilled);  // as was asked for
  run.pass(20s);
  EXPECT_THAT(run.actions(), IsEmpty());
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, HearsAnyMessageAsASignOfLife) {
  AllreduceRun run;
  for (int i = 0; i < 10; ++i) {
    run.pass(4s, run.worker(1));
    run.monitor().on_heard(run.worker(1), run.now());
  }
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, GivesAProcessTheWholeTimeoutToSayHello) {
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0), false);
  run.hello(run.worker(0));
  run.hello(run.evaluator());
  run.pass(9900ms, run.worker(1));
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.pass(100ms, run.worker(1));
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_EQ(run.line(), "worker 1 (host box) has not said hello for 10 s; this mode needs every worker");
}

// Reports of failures.

TEST(RunMonitor, JudgesAReportThatNeedsNoExplanationAtOnce) {
  const std::pair<Code, ExitCode> cases[] = {{Code::kDataLoss, ExitCode::kData},
                                             {Code::kNotFound, ExitCode::kData},
                                             {Code::kInvalidArgument, ExitCode::kUsage},
                                             {Code::kResourceExhausted, ExitCode::kOutput},
                                             {Code::kInternal, ExitCode::kInternal}};
  for (const auto& [code, exit] : cases) {
    for (const bool survives : {false, true}) {
      PsRun run(survives);
      run.fail(run.worker(1), Status(code, "labels of 12"));
      EXPECT_EQ(run.verdict(), exit);
      EXPECT_EQ(run.line(), "worker 1 (host box, pid 103; training at step 7, last heard 0.0 s ago): labels of 12");
    }
  }
}

TEST(RunMonitor, JudgesAFailureReportAndTheEndThatFollowsOnce) {
  AllreduceRun run;
  run.fail(run.worker(1), Status(Code::kDataLoss, "labels of 12"));
  run.end(run.worker(1), kFailedEnd);
  run.end(run.worker(0), kFailedEnd);
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("labels of 12")));
  EXPECT_THAT(run.line(), EndsWith("labels of 12"));
}

TEST(RunMonitor, ExplainsALostPeerByTheDeathThatBecomesKnownALittleLater) {
  AllreduceRun run;
  run.fail(run.worker(0), kPeerIsLost);
  run.end(run.worker(0), kFailedEnd);
  run.pass(1400ms);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.end(run.worker(1), kKilled);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
}

TEST(RunMonitor, TakesAReportThatNothingExplainsForTheVerdict) {
  AllreduceRun run;
  run.fail(run.worker(0), kNobodyAnswers);
  run.end(run.worker(0), kFailedEnd);
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("worker 0 "));
  EXPECT_THAT(run.line(), EndsWith(kNobodyAnswers.message()));
}

TEST(RunMonitor, TakesTheFirstOfSeveralReports) {
  AllreduceRun run;
  run.fail(run.worker(1), kPeerIsLost);
  run.pass(500ms);
  run.fail(run.worker(0), kNobodyAnswers);
  run.pass(1s);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
}

TEST(RunMonitor, IsNoSuccessWhileAReportWaitsForItsExplanation) {
  PsRun run(false);
  run.fail(run.worker(1), kNobodyAnswers);
  run.end(run.worker(1), kFailedEnd);
  for (std::size_t process : {run.worker(0), run.server(0), run.server(1)}) run.finish(process);
  EXPECT_THAT(run.actions(), IsEmpty());
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
}

TEST(RunMonitor, GoesOnWithoutAWorkerThatHasLostTouchWhereTheModeSurvivesIt) {
  PsRun run(true);
  run.fail(run.worker(1), kNobodyAnswers);
  run.pass(1500ms);
  EXPECT_THAT(
      run.actions(),
      ElementsAre("kill worker 1", AllOf(StartsWith("report: worker 1"), EndsWith("; 1 worker goes on")), "lost 1"));
  run.end(run.worker(1), kKilled);
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, DoesNotGoOnWhereNobodyCanReachTheServers) {
  PsRun run(true);
  for (int rank : {0, 1}) {
    run.fail(run.worker(rank), kNobodyAnswers);
    run.end(run.worker(rank), kFailedEnd);
  }
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("worker 0 "));
}

TEST(RunMonitor, IgnoresWhatALostWorkerStillReports) {
  PsRun run(true);
  run.pass(5s, run.worker(1));  // silent, then heard again before the kill reaches it
  run.actions();
  run.fail(run.worker(1), Status(Code::kInternal, "late"));
  run.pass(3s);
  EXPECT_THAT(run.actions(), IsEmpty());
  EXPECT_EQ(run.verdict(), std::nullopt);
}

// A person, and the disk.

TEST(RunMonitor, StopsWhenInterruptedAndSaysAtWhichStep) {
  AllreduceRun run;
  run.pass(1s);
  run.monitor().on_interrupt(run.now());
  EXPECT_EQ(run.verdict(), ExitCode::kInterrupted);
  EXPECT_EQ(run.line(), "interrupted at step 7; what was recorded is kept");
  run.end(run.worker(0), kFailedEnd);  // told to stop
  EXPECT_EQ(run.verdict(), ExitCode::kInterrupted);
}

TEST(RunMonitor, KillsAtOnceWhenInterruptedTwice) {
  AllreduceRun run;
  run.monitor().on_interrupt(run.now());
  run.actions();
  run.monitor().on_interrupt(run.now());
  run.pass(100ms);
  EXPECT_THAT(run.actions(), ElementsAre("kill worker 0", "kill worker 1", "kill evaluator"));
}

TEST(RunMonitor, StopsWhenResultsCannotBeWritten) {
  AllreduceRun run;
  run.monitor().on_output_failure(Status(Code::kResourceExhausted, "steps.csv: no space"), run.now());
  run.monitor().on_output_failure(Status(Code::kResourceExhausted, "evals.csv: no space"), run.now());
  EXPECT_EQ(run.verdict(), ExitCode::kOutput);
  EXPECT_THAT(run.actions(), ElementsAre("stop: steps.csv: no space"));
}

// What carries the processes.

TEST(RunMonitor, LetsTheProcessExplainWhyItsCarrierHasFailed) {
  AllreduceRun run;
  run.carrier_ends({.exit_code = 137, .signal = {}});
  run.pass(1s);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.end(run.worker(1), {});
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
  EXPECT_THAT(run.line(), HasSubstr("is gone"));
}

TEST(RunMonitor, TakesTheCarriersLastWordsWhereNoProcessHasLived) {
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0), false);
  run.carrier_ends(kFailedEnd);
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_EQ(run.line(), "mpirun ended with exit code 1: its last line (mpirun.log)");
}

TEST(RunMonitor, DoesNotWaitForProcessesOfACarrierThatHasEnded) {
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0), false);
  run.carrier_ends(kGoodEnd);
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_FALSE(run.monitor().over());  // the evaluator is not carried
  run.end(run.evaluator(), kKilled);
  EXPECT_TRUE(run.monitor().over());
}

TEST(RunMonitor, NamesACarrierThatWasKilledRatherThanWhatDiedWithIt) {
  AllreduceRun run;
  run.carrier_ends(kKilled);
  run.end(run.worker(0), {});
  EXPECT_THAT(run.line(), StartsWith("mpirun was killed by signal 9"));
}

TEST(RunMonitor, TakesTheEndOfACarrierWhoseProcessesHaveFinishedAsItShould) {
  AllreduceRun run;
  run.monitor().on_snapshot_sent_to_evaluator();
  for (int rank : {0, 1}) {
    run.finish(run.worker(rank));
    run.end(run.worker(rank), {});
  }
  run.carrier_ends(kGoodEnd);
  run.pass(3s);
  EXPECT_THAT(run.actions(), IsEmpty());
  run.monitor().on_evaluation(run.now());
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));
}

// The beginning of training, and the chief.

TEST(RunMonitor, ReleasesTrainingOnceAllWorkersAreReady) {
  PsRun run(false);
  run.ready(run.worker(1));
  EXPECT_THAT(run.actions(), IsEmpty());
  run.ready(run.worker(0));
  EXPECT_THAT(run.actions(), ElementsAre("release"));
  run.ready(run.worker(0));
  EXPECT_THAT(run.actions(), IsEmpty());
}

TEST(RunMonitor, ReleasesTheOthersWhenTheWorkerThatTheyWaitForIsLost) {
  PsRun run(true, 3);
  run.ready(run.worker(0));
  run.ready(run.worker(2));
  run.end(run.worker(1), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(StartsWith("report: "), "lost 1", "release"));
}

TEST(RunMonitor, ReleasesNobodyOnceItStops) {
  AllreduceRun run;
  run.ready(run.worker(0));
  run.monitor().on_interrupt(run.now());
  run.actions();
  run.ready(run.worker(1));
  EXPECT_THAT(run.actions(), IsEmpty());
}

TEST(RunMonitor, TakesTheLowestWorkerThatIsStillThereForTheChief) {
  PsRun run(true, 3);
  EXPECT_EQ(run.monitor().chief(), run.worker(0));
  run.end(run.worker(0), kKilled);
  EXPECT_EQ(run.monitor().chief(), run.worker(1));
  run.finish(run.worker(1));
  EXPECT_EQ(run.monitor().chief(), run.worker(2));
  run.fail(run.worker(2), kNobodyAnswers);
  EXPECT_EQ(run.monitor().chief(), std::nullopt);
}

}  // namespace
}  // namespace syncopate::experiments

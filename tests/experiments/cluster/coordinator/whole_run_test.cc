// RunMonitor in a run that goes as it should, from the first epoch to the end, or is ended by a person.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::StartsWith;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

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

// Workers at their own pace leave one after another, however late the last; from its last step on it is their links.
TEST(RunMonitor, WaitsForWorkersThatLeaveOnceTheLastHasMadeItsLastStep) {
  PsRun run(true);
  for (const int rank : {0, 1}) run.ready(run.worker(rank));
  run.monitor().on_leaving(run.worker(0));
  run.pass(10 * kTimeout);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.monitor().on_leaving(run.worker(1));
  run.pass(2 * kTimeout);
  run.finish(run.worker(0));
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.pass(2 * kTimeout);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
  EXPECT_THAT(run.line(), EndsWith("has not finished, 30 s after the last step of all workers"));
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

TEST(RunMonitor, LeavesSnapshotsOutWhileTheEvaluatorIsFarBehind) {
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0), {.timeout = kTimeout, .evaluation_backlog = 4000});
  for (int waiting = 0; waiting < 4; ++waiting) {
    EXPECT_TRUE(run.monitor().wants_snapshots()) << waiting << " waiting";
    run.monitor().on_snapshot(waiting, false, 1000);
  }
  EXPECT_THAT(run.actions(), IsEmpty());
  for (int asked = 0; asked < 2; ++asked) EXPECT_FALSE(run.monitor().wants_snapshots());
  EXPECT_THAT(run.actions(),
              ElementsAre("report: 4 snapshots wait to be evaluated; until fewer do, points are left out"));
  EXPECT_TRUE(run.monitor().on_evaluation(0, false, run.now()));
  EXPECT_TRUE(run.monitor().wants_snapshots());
}

TEST(RunMonitor, LetsTwoSnapshotsWaitHoweverLargeTheyAre) {
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0), {.timeout = kTimeout, .evaluation_backlog = 4000});
  for (int waiting = 0; waiting < 2; ++waiting) {
    EXPECT_TRUE(run.monitor().wants_snapshots()) << waiting << " waiting";
    run.monitor().on_snapshot(waiting, false, 9000);
  }
  EXPECT_FALSE(run.monitor().wants_snapshots());
}

// How runs end in order.

TEST(RunMonitor, StopsInSuccessOnceWorkersServersAndEvaluationsAreDone) {
  PsRun run(false);
  run.monitor().on_snapshot(0, true, 1000);
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  EXPECT_THAT(run.actions(), IsEmpty());
  for (int rank : {0, 1}) run.finish(run.server(rank));
  EXPECT_THAT(run.actions(), IsEmpty());
  run.monitor().on_evaluation(0, true, run.now());
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
  EXPECT_THAT(run.line(), StartsWith("server 1 (host box, pid 101; training, last heard"));
  EXPECT_THAT(run.line(), EndsWith("has not finished, 10 s after all workers"));
}

TEST(RunMonitor, GivesTheEvaluatorTheTimeoutForEachSnapshotThatIsLeft) {
  AllreduceRun run;
  for (int epoch = 0; epoch < 3; ++epoch) run.monitor().on_snapshot(epoch, false, 1000);
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  for (int epoch = 0; epoch < 2; ++epoch) {
    run.pass(9s);
    run.monitor().on_evaluation(epoch, false, run.now());
  }
  EXPECT_THAT(run.actions(), IsEmpty());
  run.pass(9900ms);
  EXPECT_THAT(run.actions(), IsEmpty());
}

TEST(RunMonitor, EndsWellWithoutEvaluationsThatTakeTooLong) {
  AllreduceRun run;
  run.monitor().on_snapshot(0, false, 1000);
  run.monitor().on_snapshot(0, true, 1000);
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  run.pass(kTimeout);
  EXPECT_EQ(run.verdict(), std::nullopt);
  EXPECT_THAT(run.actions(),
              ElementsAre("kill evaluator",
                          AllOf(StartsWith("report: evaluator (host box, pid 102"),
                                EndsWith("has not finished, 10 s after all workers; not evaluated: 1 snapshot and the "
                                         "final weights")),
                          "stop: "));
  EXPECT_TRUE(run.monitor().evaluations().is_final_missing());
}

// A person, and the disk.

TEST(RunMonitor, StopsWhenInterruptedAndSaysAtWhichStep) {
  AllreduceRun run;
  run.pass(1s);
  run.monitor().on_interrupt(run.now());
  EXPECT_EQ(run.verdict(), ExitCode::kInterrupted);
  EXPECT_EQ(run.line(), "interrupted at step 7; what was recorded is kept");
  run.monitor().on_step_finished(run.worker(0), 0, 238);  // which was on its way
  EXPECT_EQ(run.line(), "interrupted at step 238; what was recorded is kept");
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
  run.monitor().on_output_failure(Status::resource_exhausted("steps.csv: no space"), run.now());
  run.monitor().on_output_failure(Status::resource_exhausted("evals.csv: no space"), run.now());
  EXPECT_EQ(run.verdict(), ExitCode::kOutput);
  EXPECT_THAT(run.actions(), ElementsAre("stop: steps.csv: no space"));
}

}  // namespace
}  // namespace syncopate::experiments

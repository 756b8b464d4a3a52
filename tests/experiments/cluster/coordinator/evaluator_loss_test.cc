// What becomes of a run, and of its evaluations, when it loses its evaluator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/cluster/coordinator/evaluator_policy.h"
#include "tests/experiments/cluster/coordinator/coordinated_run.h"
#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

// EvaluatorPolicy.

TEST(EvaluatorPolicy, StartsItAgainThreeTimesAfterEverLongerPauses) {
  EvaluatorPolicy policy(1000, true, false);
  Duration before{};
  for (int start = 0; start < EvaluatorPolicy::kMostStarts; ++start) {
    const EvaluatorPolicy::Loss loss = policy.on_lost();
    ASSERT_TRUE(loss.start_after.has_value());
    EXPECT_GT(*loss.start_after, before);
    EXPECT_EQ(loss.consequence, "it is started again");
    before = *loss.start_after;
  }
  const EvaluatorPolicy::Loss last = policy.on_lost();
  EXPECT_FALSE(last.start_after.has_value());
  EXPECT_EQ(last.consequence, "it was started again 3 times and has evaluated nothing: nothing is evaluated any more");
  EXPECT_FALSE(policy.evaluates());
}

TEST(EvaluatorPolicy, StartsItAgainAsOftenAsItHasEvaluatedSomething) {
  EvaluatorPolicy policy(1000, true, false);
  for (int epoch = 0; epoch < 10; ++epoch) {
    ASSERT_TRUE(policy.on_lost().start_after.has_value());
    policy.on_snapshot(epoch, false, 10);
    EXPECT_TRUE(policy.on_evaluation(epoch, false));
  }
}

TEST(EvaluatorPolicy, SaysWhatItIsStartedAgainFor) {
  EvaluatorPolicy policy(1000, true, false);
  policy.on_snapshot(1, false, 10);
  policy.on_snapshot(2, false, 10);
  EXPECT_EQ(policy.on_lost().consequence, "it is started again, for 2 snapshots");
}

TEST(EvaluatorPolicy, SaysThatATargetCannotBeJudgedAnyMore) {
  EvaluatorPolicy policy(1000, true, true);
  EXPECT_EQ(policy.give_up(), "nothing is evaluated any more, and --target-accuracy cannot be judged");
  EXPECT_FALSE(policy.wants_snapshots());
}

// RunMonitor.

TEST(RunMonitor, StartsALostEvaluatorAgainInEveryMode) {
  AllreduceRun run;
  run.monitor().on_snapshot(0, false, 1000);
  run.end(run.evaluator(), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(AllOf(StartsWith("report: evaluator "),
                                               EndsWith("was killed by signal 9 (Killed); it is started again, for "
                                                        "1 snapshot"))));
  run.pass(200ms);
  EXPECT_THAT(run.actions(), ElementsAre("start evaluator"));
  run.hello(run.evaluator());
  EXPECT_THAT(run.actions(), ElementsAre("report: evaluator is back (pid 102)"));
  EXPECT_TRUE(run.monitor().still_there(run.evaluator()));
  EXPECT_TRUE(run.monitor().on_evaluation(0, false, run.now()));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, KillsAnEvaluatorThatHasFallenSilentAndStartsItAgainOnceItHasEnded) {
  AllreduceRun run;
  run.pass(kTimeout / 2, run.evaluator());
  EXPECT_THAT(run.actions(), ElementsAre("kill evaluator", HasSubstr("has stopped answering; it is started again")));
  run.pass(1s);
  EXPECT_THAT(run.actions(), IsEmpty());
  run.end(run.evaluator(), kKilled);
  run.pass(200ms);
  EXPECT_THAT(run.actions(), ElementsAre("start evaluator"));
}

TEST(RunMonitor, GoesOnWithoutAnEvaluatorThatEndsEachTimeItIsStarted) {
  AllreduceRun run;
  for (int rank : {0, 1}) run.ready(run.worker(rank));
  run.monitor().on_snapshot(0, false, 1000);
  (void)run.actions();
  run.fail(run.evaluator(), Status::internal("out of something"));
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("out of something; it is started again")));
  run.end(run.evaluator(), kFailedEnd);
  for (int start = 0; start < EvaluatorPolicy::kMostStarts; ++start) {
    run.pass(6s);
    EXPECT_THAT(run.actions(), ElementsAre("start evaluator"));
    run.end(run.evaluator(), kFailedEnd);  // before its hello
    EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("ended with exit code 1; it ")));
  }
  run.pass(30s);
  EXPECT_THAT(run.actions(), IsEmpty());
  EXPECT_FALSE(run.monitor().wants_snapshots());
  run.monitor().on_snapshot(1, true, 1000);
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  EXPECT_THAT(run.actions(), ElementsAre("report: not evaluated: 1 snapshot and the final weights", "stop: "));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, WaitsAtTheEndForAnEvaluatorThatIsStartedAgain) {
  AllreduceRun run;
  run.monitor().on_snapshot(0, true, 1000);
  for (int rank : {0, 1}) run.finish(run.worker(rank));
  run.pass(9s);
  run.end(run.evaluator(), kKilled);
  run.pass(200ms);
  (void)run.actions();
  run.hello(run.evaluator());
  run.pass(9s);
  run.monitor().on_evaluation(0, true, run.now());
  EXPECT_THAT(run.actions(), ElementsAre("report: evaluator is back (pid 102)", "stop: "));
}

TEST(RunMonitor, IsNotOverWhileTheEvaluatorAloneIsStartedAgain) {
  AllreduceRun run;
  run.monitor().on_snapshot(0, true, 1000);
  run.end(run.evaluator(), kKilled);
  for (int rank : {0, 1}) {
    run.finish(run.worker(rank));
    run.end(run.worker(rank), kGoodEnd);
  }
  EXPECT_FALSE(run.monitor().over());
  run.pass(200ms);
  EXPECT_FALSE(run.monitor().over());
}

TEST(RunMonitor, EndsForWhatTheEvaluatorFindsWrongBeforeAnythingWasTrained) {
  AllreduceRun run;
  run.fail(run.evaluator(), Status::data_loss("digits: truncated"));
  EXPECT_EQ(run.verdict(), ExitCode::kData);
}

// Coordinator.

void take_snapshot(CoordinatedRun& run, std::int64_t epoch) {
  ToCoordinator message;
  message.mutable_snapshot()->set_point(epoch);
  run.worker(0).say(message, {1, 2, 3});
}

std::int64_t evaluation_heard_by(Peer& evaluator) {
  const auto [message, bytes] = evaluator.hear();
  EXPECT_TRUE(message.has_snapshot()) << message.ShortDebugString();
  EXPECT_EQ(bytes, 3 * sizeof(float));
  return message.snapshot().point();
}

void evaluate(Peer& evaluator, std::int64_t epoch, double accuracy) {
  ToCoordinator message;
  message.mutable_evaluation()->mutable_snapshot()->set_point(epoch);
  message.mutable_evaluation()->set_accuracy(accuracy);
  evaluator.say(message);
  ToCoordinator beat;
  beat.mutable_heartbeat();
  evaluator.say(beat);
  EXPECT_TRUE(evaluator.hear().first.has_alive());  // so it has been handled
}

TEST(Coordinator, GivesAnEvaluatorThatIsStartedAgainWhatTheOneBeforeHasNotEvaluated) {
  RunRequest config;
  config.mode = Mode::kPs;
  config.timeout_seconds = 600;  // nobody is silent for too long in here
  CoordinatedRun run(config);
  for (const std::int64_t epoch : {0, 1, 2}) take_snapshot(run, epoch);
  for (const std::int64_t epoch : {0, 1, 2}) EXPECT_EQ(evaluation_heard_by(run.evaluator()), epoch);
  evaluate(run.evaluator(), 0, 0.25);
  run.processes().kill("evaluator");
  EXPECT_EQ(run.processes().started_again(), "evaluator0");
  const std::unique_ptr<Peer> again = run.connect(Role::kEvaluator, 0, 1);
  again->say_hello("run-7");
  EXPECT_TRUE(again->hear().first.has_welcome());
  for (const std::int64_t epoch : {1, 2}) EXPECT_EQ(evaluation_heard_by(*again), epoch);
  for (int times = 0; times < 2; ++times) evaluate(*again, 1, 0.5);
  run.end();
  EXPECT_THAT(run.observer().accuracies, ElementsAre(0.25, 0.5));  // each once
}

}  // namespace
}  // namespace syncopate::experiments

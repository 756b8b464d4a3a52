// RunMonitor in a run in which something fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

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

// Threads or processes of this user had run out, say; those that wait for it only see that it does not come.
TEST(RunMonitor, NamesWhoWasLostWhileAllConnectedIfTheOthersWaitInVain) {
  PsRun run(true);
  run.end(run.worker(0), {.exit_code = 4, .signal = {}, .last_words = "no thread can be started"});
  run.fail(run.server(0), Status::deadline_exceeded("waiting for group data@0: not everybody is there"));
  run.pass(2s);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(),
              testing::MatchesRegex("server 0 .*not everybody is there; before that, worker 0 .host box, pid 10"
                                    ".*ended with exit code 4: no thread can be started"));
}

TEST(RunMonitor, SaysThatTheKernelHasKilledAProcessForItsMemory) {
  AllreduceRun run;
  ProcessEnd killed = kKilled;
  killed.out_of_memory = true;
  run.end(run.worker(1), killed);
  EXPECT_THAT(run.line(), HasSubstr("was killed by the kernel, since memory ran out (the OOM killer)"));
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

TEST(RunMonitor, DoesNotSurviveTheLossOfAServer) {
  PsRun run(true);
  run.end(run.server(1), kKilled);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), StartsWith("server 1 "));
  EXPECT_THAT(run.line(), EndsWith("was killed by signal 9 (Killed)"));
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
  run.fail(run.worker(1), Status::internal("late"));
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

TEST(RunMonitor, NamesAllOfAHostThatIsSilentAndWaitsForNoneOfThemToStop) {
  WatchedRun run(with_far_host(plan_of(Mode::kAllreduce, 4, 0)));
  run.everybody_says_hello();
  run.pass_without_host(kTimeout / 2, "far");
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_EQ(run.line(),
            "worker 1 (host box, pid 101; starting at step 0, last heard 5.0 s ago) has stopped answering, as have all "
            "others on its host: worker 3; this mode needs every worker");
  EXPECT_THAT(run.actions(), ElementsAre("kill worker 1", StartsWith("stop: worker 1"), "kill worker 3"));
}

TEST(RunMonitor, NamesOneAloneWhereOthersOfItsHostAreHeard) {
  WatchedRun run(with_far_host(plan_of(Mode::kAllreduce, 4, 0)));
  run.everybody_says_hello();
  run.pass(kTimeout / 2, run.worker(1));
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), EndsWith("has stopped answering; this mode needs every worker"));
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
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0));
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
  run.fail(run.worker(1), Status::data_loss("labels of 12"));
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
  run.fail(run.worker(1), Status::internal("late"));
  run.pass(3s);
  EXPECT_THAT(run.actions(), IsEmpty());
  EXPECT_EQ(run.verdict(), std::nullopt);
}

// Workers that keep others waiting at a server.

TEST(RunMonitor, GoesOnWithoutAWorkerThatOthersWaitForInVainThoughItIsHeard) {
  PsRun run(true, 3);
  run.pass(8s);
  run.miss(1);
  EXPECT_THAT(run.actions(),
              ElementsAre("kill worker 1",
                          "report: worker 1 (host box, pid 103; training at step 7, last heard 0.0 s ago) has pushed "
                          "nothing to server 0 for 7.5 s, where others wait for it; 2 workers go on",
                          "lost 1"));
  run.miss(1);  // another server has waited, too
  run.end(run.worker(1), kKilled);
  EXPECT_THAT(run.actions(), IsEmpty());
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, NamesAWorkerThatOthersWaitForInVainWhereEveryWorkerIsNeeded) {
  PsRun run(false);
  run.miss(1);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
  EXPECT_THAT(run.line(), EndsWith("where others wait for it; this mode needs every worker"));
}

TEST(RunMonitor, TakesNobodyForMissingWhoWasSoInAnEarlierMembershipOrIsDone) {
  PsRun run(true);
  run.miss(1, -1);
  run.finish(run.worker(0));
  run.miss(0);
  EXPECT_THAT(run.actions(), IsEmpty());
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
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0));
  run.carrier_ends(kFailedEnd);
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_EQ(run.line(), "mpirun ended with exit code 1: its last line (mpirun.log)");
}

TEST(RunMonitor, DoesNotWaitForProcessesOfACarrierThatHasEnded) {
  WatchedRun run(plan_of(Mode::kAllreduce, 2, 0));
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

// Two workers under mpirun, the first on another host.
class SpreadRun : public WatchedRun {
 public:
  SpreadRun() : WatchedRun(plan()) { everybody_says_hello(); }

 private:
  static JobPlan plan() {
    ResolvedRun config;
    config.mode = Mode::kAllreduce;
    config.workers = 2;
    return make_plan(config, "run-7",
                     {.coordinator = "box", .hosts = {{.name = "node1", .slots = 1, .remote = true}, {.name = "box"}}});
  }
};

TEST(RunMonitor, TakesTheCarriersWordOnAWorkerOfAnotherHostForWhichItHasEndedThoseHere) {
  SpreadRun run;
  run.end(run.worker(1), {});
  run.pass(4s);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.carrier_ends({.exit_code = 137, .signal = {}});
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), StartsWith("mpirun ended with exit code 137: its last line"));
}

TEST(RunMonitor, NamesACarriedWorkerThatIsGoneWhereItsCarrierSaysNothingOfAnother) {
  SpreadRun run;
  run.end(run.worker(1), {});
  run.pass(6s);
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
}

TEST(RunMonitor, KnowsThatWorkersOfOtherHostsHaveEndedWhenTheirCarrierHas) {
  SpreadRun run;
  run.finish(run.worker(0));
  run.finish(run.worker(1));
  run.end(run.worker(1), {});
  run.end(run.evaluator(), kGoodEnd);
  EXPECT_FALSE(run.monitor().over());
  run.carrier_ends(kGoodEnd);
  EXPECT_TRUE(run.monitor().over());
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, TellsALostRemoteShellFromALostProcess) {
  AllreduceRun run;
  run.end(run.worker(1), {.exit_code = 255, .signal = {}, .of_remote_shell = true});
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), HasSubstr("lost its remote shell, which ended with exit code 255"));
}

TEST(RunMonitor, TakesTheEndOfACarrierWhoseProcessesHaveFinishedAsItShould) {
  AllreduceRun run;
  run.monitor().on_snapshot(0, true, 1000);
  for (int rank : {0, 1}) {
    run.finish(run.worker(rank));
    run.end(run.worker(rank), {});
  }
  run.carrier_ends(kGoodEnd);
  run.pass(3s);
  EXPECT_THAT(run.actions(), IsEmpty());
  run.monitor().on_evaluation(0, true, run.now());
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));
}

// What they have said meanwhile is yet to be received.
TEST(RunMonitor, ForgivesSilenceWhileItDidNotRunItself) {
  PsRun run(false);
  run.let_pass(3 * kTimeout);
  run.monitor().on_tick(run.now());
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.pass(kTimeout / 2 + kTick, run.worker(1));
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
}

TEST(RunMonitor, MovesAllItsDeadlinesByTheTimeInWhichItDidNotRun) {
  PsRun run(false);
  run.fail(run.worker(1), kPeerIsLost);                                // kept for 1.5 s
  for (int rank : {0, 1}) run.monitor().on_leaving(run.worker(rank));  // to be followed within three timeouts
  run.pass(kTick);
  run.let_pass(10 * kTimeout);
  EXPECT_GT(run.monitor().notice_absence(run.now()), 9 * kTimeout);
  EXPECT_EQ(run.monitor().notice_absence(run.now()), Duration::zero());
  run.pass(1s);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.end(run.server(0), kKilled);  // what explains the report is heard only now
  EXPECT_THAT(run.line(), StartsWith("server 0 "));
  EXPECT_THAT(run.line(), EndsWith("; before that, run_experiment itself had not run for 100.0 s"));
}

TEST(RunMonitor, DoesNotBlameAWorkerThatOthersMissedWhileItDidNotRunItself) {
  PsRun run(true);
  run.let_pass(2 * kTimeout);
  (void)run.monitor().notice_absence(run.now());
  run.miss(1);
  EXPECT_THAT(run.actions(), IsEmpty());
  run.pass(kTimeout);
  run.miss(1);
  EXPECT_THAT(run.actions(), testing::Contains("lost 1"));
}

TEST(RunMonitor, SaysTheLastWordsOfAProcessThatEndedItselfAndWhatRanOut) {
  PsRun run(false);
  run.end(run.server(0), {.exit_code = 4, .signal = {}, .last_words = "out of memory (server-0.log)"});
  EXPECT_EQ(run.verdict(), ExitCode::kOutput);
  EXPECT_THAT(run.line(), EndsWith("ended with exit code 4: out of memory (server-0.log)"));
}

}  // namespace
}  // namespace syncopate::experiments

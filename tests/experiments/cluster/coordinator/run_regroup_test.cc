// What RunMonitor makes of losses that a run recovers from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(RunMonitorRegroups, SurvivorsMakeANewMembership) {
  ElasticRun run;
  run.end(run.worker(1), kKilled);
  EXPECT_EQ(run.verdict(), std::nullopt);
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("(Killed); 2 workers go on"), "lost 1", "membership 1"));
  EXPECT_THAT(run.monitor().membership().workers, ElementsAre(0, 2));
  run.end(run.worker(0), kKilled);
  run.end(run.worker(2), kKilled);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), StartsWith("worker 2 "));
}

TEST(RunMonitorRegroups, BeforeTrainingTheNewMembershipBegins) {
  ElasticRun run;
  run.ready(run.worker(0));
  run.end(run.worker(1), kKilled);
  EXPECT_TRUE(run.monitor().membership().begins);
  run.ready(run.worker(2));
  EXPECT_THAT(run.actions(), testing::Not(testing::Contains("release")));  // worker 0 has to ask anew
  run.ready(run.worker(0));
  EXPECT_THAT(run.actions(), ElementsAre("release"));
  run.end(run.worker(2), kKilled);
  EXPECT_FALSE(run.monitor().membership().begins);
}

TEST(RunMonitorRegroups, WhatIsLostIsStartedAgainAndJoins) {
  ElasticRun run(true);
  for (const int rank : {0, 1, 2}) run.ready(run.worker(rank));
  run.end(run.worker(1), kKilled);
  (void)run.actions();
  run.pass(std::chrono::milliseconds(1900));
  EXPECT_THAT(run.actions(), IsEmpty());
  run.pass(std::chrono::milliseconds(200));
  EXPECT_THAT(run.actions(), ElementsAre("start worker 1"));
  run.hello(run.worker(1));
  EXPECT_THAT(run.actions(), IsEmpty());  // it reads its data first
  run.join(run.worker(1));
  EXPECT_THAT(run.actions(), ElementsAre("report: worker 1 is back (pid 101)", "joined 1", "membership 2"));
  EXPECT_THAT(run.monitor().membership().workers, ElementsAre(0, 1, 2));
}

TEST(RunMonitorRegroups, WhoHasJustComeHoldsNothingThatOthersCouldGoOnFrom) {
  for (const bool has_trained : {false, true}) {
    ElasticRun run(true);
    for (const int rank : {0, 1, 2}) run.ready(run.worker(rank));
    run.end(run.worker(1), kKilled);
    run.pass(std::chrono::milliseconds(2100));
    run.hello(run.worker(1));
    run.join(run.worker(1));
    if (has_trained) run.step(run.worker(1));
    run.end(run.worker(0), kKilled);
    EXPECT_EQ(run.verdict(), std::nullopt);
    run.end(run.worker(2), kKilled);
    EXPECT_EQ(run.verdict(), has_trained ? std::nullopt : std::optional(ExitCode::kProcessLost));
    EXPECT_EQ(run.line().ends_with("; nobody who is left holds the weights"), !has_trained);
  }
}

TEST(RunMonitorRegroups, WhatDiesBeforeItJoinsIsStartedOnceMore) {
  ElasticRun run(true);
  for (const int rank : {0, 1, 2}) run.ready(run.worker(rank));
  run.end(run.worker(1), kKilled);
  run.pass(std::chrono::seconds(3));
  run.end(run.worker(1), kKilled);
  (void)run.actions();
  run.pass(std::chrono::seconds(3));
  EXPECT_THAT(run.actions(), ElementsAre("start worker 1"));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitorRegroups, NobodyIsStartedOrLetInOnceTrainingIsOver) {
  ElasticRun run(true);
  for (const int rank : {0, 1, 2}) run.ready(run.worker(rank));
  run.end(run.worker(1), kKilled);
  run.pass(std::chrono::seconds(3));
  run.hello(run.worker(1));
  (void)run.actions();
  run.monitor().on_leaving(run.worker(0));
  run.join(run.worker(1));
  EXPECT_THAT(run.actions(), IsEmpty());
  run.monitor().on_training_over(run.worker(0), run.now());
  run.end(run.worker(2), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("1 worker goes on"), "lost 2"));
  run.finish(run.worker(0));
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));
}

TEST(RunMonitorRegroups, WhoHasJustComeIsNotNeededOnceTrainingIsOver) {
  ElasticRun run(true);
  for (const int rank : {0, 1, 2}) run.ready(run.worker(rank));
  run.end(run.worker(1), kKilled);
  run.pass(std::chrono::seconds(3));
  run.hello(run.worker(1));
  run.join(run.worker(1));
  (void)run.actions();
  run.monitor().on_training_over(run.worker(0), run.now());
  EXPECT_THAT(run.actions(), ElementsAre("kill worker 1", "lost 1"));
  run.finish(run.worker(0));
  run.finish(run.worker(2));
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

// Records of steps come some time after the steps.
TEST(RunMonitorRegroups, WhoHasComeAndLeavesWithTheOthersIsWaitedFor) {
  ElasticRun run(true);
  for (const int rank : {0, 1, 2}) run.ready(run.worker(rank));
  run.end(run.worker(1), kKilled);
  run.pass(std::chrono::seconds(3));
  run.hello(run.worker(1));
  run.join(run.worker(1));
  (void)run.actions();
  for (const int rank : {0, 1, 2}) run.monitor().on_leaving(run.worker(rank));
  run.monitor().on_training_over(run.worker(0), run.now());
  run.finish(run.worker(0));
  run.finish(run.worker(2));
  EXPECT_THAT(run.actions(), IsEmpty());
  run.finish(run.worker(1));
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitorRegroups, WhoHasLostTouchIsHelpedByANewMembershipOfAll) {
  ElasticRun run;
  run.trouble(run.worker(0), 0);
  run.trouble(run.worker(2), 0);
  EXPECT_THAT(run.actions(), IsEmpty());  // somebody may be dead
  run.pass(std::chrono::seconds(2));
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("for 10 s; all connect anew"), "membership 1"));
  run.trouble(run.worker(1), 0);  // told before it heard
  run.pass(std::chrono::seconds(2));
  EXPECT_THAT(run.actions(), IsEmpty());
}

TEST(RunMonitorRegroups, ALossExplainsWhoHasLostTouch) {
  ElasticRun run;
  run.trouble(run.worker(0), 0);
  run.end(run.worker(1), kKilled);
  run.pass(std::chrono::seconds(2));
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("worker 1 "), "lost 1", "membership 1"));
}

TEST(RunMonitorRegroups, GivesUpWhereMembershipsAreInVain) {
  ElasticRun run;
  for (std::int64_t membership = 0; membership < 20 && !run.verdict(); ++membership) {
    run.trouble(run.worker(0), membership);
    run.pass(std::chrono::seconds(2));
  }
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), HasSubstr("no step was finished in"));
}

TEST(RunMonitorRegroups, AreNotInVainWhereAnybodyFinishesAStep) {
  ElasticRun run;
  for (std::int64_t membership = 0; membership < 20; ++membership) {
    run.trouble(run.worker(0), membership);
    run.pass(std::chrono::seconds(2));
    run.step(run.worker(2));  // however far others had come before
  }
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitorRegroups, AStandbyTakesItsServersPlace) {
  ReplicatedRun run;
  run.end(run.server(0), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("(Killed); standby 0 takes its place"), "membership 1"));
  EXPECT_TRUE(run.monitor().membership().servers[0].standby_leads);
  run.end(run.standby(0), kKilled);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
}

TEST(RunMonitorRegroups, AStandbyThatHasJustComeStandsInForNobody) {
  for (const bool has_a_state : {false, true}) {
    ReplicatedRun run(Duration{});
    run.end(run.standby(0), kKilled);
    run.pass(kTick);
    run.hello(run.standby(0));
    run.join(run.standby(0));
    // A step from before tells nothing.
    run.monitor().on_step_finished(run.worker(0), run.monitor().membership().number - 1, 7);
    if (has_a_state) run.step(run.worker(0));
    run.end(run.server(0), kKilled);
    EXPECT_EQ(run.verdict(), has_a_state ? std::nullopt : std::optional(ExitCode::kProcessLost));
  }
}

TEST(RunMonitorRegroups, AServerGoesOnWithoutItsStandby) {
  ReplicatedRun run;
  run.end(run.standby(0), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("(Killed); server 0 goes on without it"), "membership 1"));
  EXPECT_FALSE(run.monitor().membership().servers[0].has_standby);
}

TEST(RunMonitorRegroups, ALostServerIsStartedAgainAndAllGoBack) {
  WatchedRun run(plan_of(Mode::kPs, 2, 1),
                 {.recovery = {.survives_workers = true, .goes_back = true}, .timeout = kTimeout});
  run.everybody_says_hello();
  for (const int rank : {0, 1}) run.ready(run.worker(rank));
  run.monitor().on_checkpoint("checkpoints/step-000100");
  (void)run.actions();
  run.end(run.server(0), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("all go back to checkpoints/step-000100")));
  run.pass(kTick);
  EXPECT_THAT(run.actions(), ElementsAre("start server 0"));
  run.hello(run.server(0));
  run.join(run.server(0));
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("server 0 is back"), "membership 1"));
  EXPECT_EQ(run.monitor().membership().restore, "checkpoints/step-000100");
}

TEST(RunMonitorGoesBack, OnceAllLostServersAreThereAgain) {
  GoingBackRun run;
  run.end(run.server(0), kKilled);
  run.end(run.server(1), kKilled);
  run.pass(kTick);
  EXPECT_THAT(run.actions(), testing::IsSupersetOf({"start server 0", "start server 1"}));
  run.comes_back(run.server(0));
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("server 0 is back")));
  EXPECT_EQ(run.monitor().membership().number, 0);
  for (const int rank : {0, 1}) run.step(run.worker(rank));  // made before, and heard of only now
  run.comes_back(run.server(1));
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("server 1 is back"), "membership 1"));
  EXPECT_EQ(run.monitor().membership().restore, GoingBackRun::kCheckpoint);
}

TEST(RunMonitorGoesBack, InEachMembershipUntilAllTrainOnFromThere) {
  GoingBackRun run(0, Duration{});
  run.end(run.worker(1), kKilled);
  run.end(run.server(0), kKilled);
  run.pass(kTick);
  run.comes_back(run.worker(1));
  EXPECT_EQ(run.monitor().membership().number, 0) << "a shard has no home yet";
  run.comes_back(run.server(0));
  EXPECT_EQ(run.monitor().membership().restore, GoingBackRun::kCheckpoint);
  run.step(run.worker(0));
  run.trouble(run.worker(1), 1);
  run.pass(std::chrono::seconds(2));
  EXPECT_EQ(run.monitor().membership().number, 2);
  EXPECT_EQ(run.monitor().membership().restore, GoingBackRun::kCheckpoint) << "worker 1 may not be back there";
  for (const int rank : {0, 1}) run.step(run.worker(rank));
  run.trouble(run.worker(1), 2);
  run.pass(std::chrono::seconds(2));
  EXPECT_EQ(run.monitor().membership().number, 3);
  EXPECT_EQ(run.monitor().membership().restore, "");
}

TEST(RunMonitorGoesBack, AlsoWhereBothReplicasAreLostAndNothingElseWouldBeStartedAgain) {
  for (const bool server_first : {true, false}) {
    GoingBackRun run(1);
    run.end(server_first ? run.server(0) : run.standby(0), kKilled);
    run.end(server_first ? run.standby(0) : run.server(0), kKilled);
    EXPECT_EQ(run.verdict(), std::nullopt);
    (void)run.actions();
    run.pass(kTick);
    EXPECT_THAT(run.actions(), ElementsAre("start server 0"));
    run.comes_back(run.server(0));
    EXPECT_EQ(run.monitor().membership().restore, GoingBackRun::kCheckpoint);
  }
}

TEST(RunMonitorGoesBack, AtOnceWhereAnotherReplicaIsThereButHoldsNothing) {
  GoingBackRun run(1, Duration{});
  run.end(run.standby(0), kKilled);
  run.pass(kTick);
  run.comes_back(run.standby(0));
  (void)run.actions();
  run.end(run.server(0), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(EndsWith("; all go back to checkpoints/step-000100"), "membership 3"));
  EXPECT_EQ(run.monitor().membership().restore, GoingBackRun::kCheckpoint);
  EXPECT_TRUE(run.monitor().membership().servers[0].standby_leads);
}

// A membership epoch is about to help them.
TEST(RunMonitorGoesBack, WithoutEndingWorkersThatCannotReachTheServerMeanwhile) {
  GoingBackRun run;
  run.end(run.server(0), kKilled);
  run.trouble(run.worker(0), 0);
  run.pass(std::chrono::seconds(3));
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("is started again"), "start server 0"));
  run.comes_back(run.server(0));
  EXPECT_EQ(run.monitor().membership().number, 1);
  EXPECT_EQ(run.verdict(), std::nullopt);
}

// A fast worker was about to leave; all come to that point once more.
// The others would give up before its next start, and blame each other.
TEST(RunMonitorGoesBack, NotToAServerWhoseHostIsGone) {
  GoingBackRun run(with_far_host(plan_of(Mode::kPs, 2, 2)), 0, std::nullopt);
  run.pass_without_host(kTimeout / 2, "far");
  run.end(run.server(1), kKilled);
  run.pass_without_host(kTick, "far");
  EXPECT_THAT(run.actions(), Contains("start server 1"));
  run.pass_without_host(kTimeout, "far");
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), EndsWith("has not said hello for 10 s, started again there; on hosts that are left, "
                                   "--resume=auto goes on from checkpoints/step-000100"));
}

TEST(RunMonitorGoesBack, AndIsOpenToOthersAgain) {
  GoingBackRun run(0, Duration{});
  run.monitor().on_leaving(run.worker(0));
  run.end(run.server(0), kKilled);
  run.pass(kTick);
  run.monitor().on_leaving(run.worker(0));  // said before it heard
  run.comes_back(run.server(0));
  EXPECT_EQ(run.monitor().membership().number, 1);
}

TEST(RunMonitorGoesBack, NotWhereWhatServesHasFinished) {
  GoingBackRun run;
  run.finish(run.server(1));
  run.end(run.server(0), kKilled);
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_THAT(run.line(), EndsWith("others that serve have finished, and cannot take part in another membership"));
}

TEST(RunMonitorStartsAgain, EverMoreSeldomWhatCannotBeStarted) {
  GoingBackRun run;
  run.end(run.server(0), kKilled);
  int starts = 0;
  for (int tick = 0; tick < 300 && !run.verdict(); ++tick) {
    run.pass(kTick);
    for (const std::string& action : run.actions()) {
      if (action != "start server 0") continue;
      ++starts;
      run.end(run.server(0), {});
    }
  }
  EXPECT_EQ(run.verdict(), ExitCode::kProcessLost);
  EXPECT_EQ(run.line(), "server 0 was started again 6 times, and has not taken part since");
  EXPECT_EQ(starts, 6);
}

TEST(RunMonitorStartsAgain, WhatHangsBeforeItTakesPart) {
  ElasticRun run(true);
  for (const int rank : {0, 1, 2}) run.ready(run.worker(rank));
  run.end(run.worker(1), kKilled);
  run.pass(std::chrono::seconds(3));
  (void)run.actions();
  run.pass(kTimeout);
  EXPECT_THAT(run.actions(), ElementsAre("kill worker 1", HasSubstr("has not said hello for 10 s")));
  run.end(run.worker(1), kKilled);
  run.pass(std::chrono::seconds(3));
  EXPECT_THAT(run.actions(), ElementsAre("start worker 1"));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

// It waits for its final weights, which nobody has any more; the run has them.
TEST(RunMonitorRegroups, WhoLacksItsFinalWeightsWhenTheirServerIsLostIsGivenUp) {
  ReplicatedRun run;
  run.monitor().on_training_over(run.worker(0), run.now());
  run.finish(run.worker(0));
  run.end(run.standby(0), kKilled);
  EXPECT_THAT(run.actions(), ElementsAre(HasSubstr("standby 0 "), "kill worker 1", "lost 1"));
  run.finish(run.server(0));
  EXPECT_THAT(run.actions(), ElementsAre("stop: "));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitorRegroups, ALostWorkersTroubleIsForgotten) {
  ReplicatedRun run;
  run.trouble(run.worker(1), 0);
  run.end(run.worker(1), kKilled);
  (void)run.actions();
  run.pass(std::chrono::seconds(3));
  EXPECT_THAT(run.actions(), IsEmpty());
}

TEST(RunMonitorRegroups, AHundredAndTwentyEightWorkersGoOnWithoutWhoIsLost) {
  WatchedRun run(plan_of(Mode::kAllreduce, 128, 0),
                 {.recovery = {.survives_workers = true, .regroups_without_worker = true}, .timeout = kTimeout});
  run.everybody_says_hello();
  for (int rank = 0; rank < 128; ++rank) run.ready(run.worker(rank));
  run.end(run.worker(64), kKilled);
  run.end(run.worker(127), kKilled);
  EXPECT_EQ(run.verdict(), std::nullopt);
  std::vector<int> left(127);
  std::iota(left.begin(), left.end(), 0);
  std::erase(left, 64);
  EXPECT_EQ(run.monitor().membership().workers, left);
}

}  // namespace
}  // namespace syncopate::experiments

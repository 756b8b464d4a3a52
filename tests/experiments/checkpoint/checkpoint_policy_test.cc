#include "experiments/checkpoint/checkpoint_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using Kind = CheckpointReport::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TimePoint at(double seconds) { return TimePoint() + from_seconds(seconds); }

// "order 12", "complete 12", "give up 12", "report ..."
std::vector<std::string> actions(CheckpointPolicy& policy) {
  std::vector<std::string> texts;
  for (const CheckpointAction& action : policy.take_actions()) {
    constexpr const char* kNames[] = {"order ", "complete ", "give up ", "report "};
    texts.push_back(kNames[static_cast<int>(action.kind)] +
                    (action.text.empty() ? std::to_string(action.step) : action.text));
  }
  return texts;
}

void report(CheckpointPolicy& policy, const std::string& writer, std::int64_t step, Kind kind = Kind::kWritten,
            std::int64_t membership_epoch = 0) {
  policy.on_report(writer, {.kind = kind,
                            .membership_epoch = membership_epoch,
                            .step = step,
                            .part = {.writer = writer},
                            .reason = "disk full",
                            .stall = std::chrono::milliseconds(2)});
}

CheckpointPolicy by_steps() {
  CheckpointPolicy policy({.steps = 100}, true);
  policy.on_membership(0, {"worker-0", "worker-1"}, at(0));
  return policy;
}

// Makes 100 steps a second.
CheckpointPolicy by_seconds(bool together = true) {
  CheckpointPolicy policy({.seconds = 2}, together);
  policy.on_membership(0, {"worker-0", "worker-1"}, at(0));
  for (int i = 0; i <= 15; ++i) policy.on_steps("worker-0", i * 10, at(0.1 * i));
  return policy;
}

TEST(CheckpointPolicy, ByStepsNeedsNoOrderWhereAllMoveTogether) {
  CheckpointPolicy policy = by_steps();
  policy.on_steps("worker-0", 150, at(1));
  policy.on_tick(at(1));
  EXPECT_THAT(actions(policy), IsEmpty());
}

TEST(CheckpointPolicy, IsCompleteOnceAllPartsAreWritten) {
  CheckpointPolicy policy = by_steps();
  report(policy, "worker-1", 100);
  EXPECT_THAT(actions(policy), IsEmpty());
  report(policy, "worker-0", 100);
  const std::vector<CheckpointAction> done = policy.take_actions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].kind, CheckpointAction::Kind::kComplete);
  EXPECT_EQ(done[0].parts.size(), 2u);
  EXPECT_FALSE(policy.figures().last_step) << "the manifest is not written yet";
  policy.on_complete(100, Status());
  EXPECT_EQ(policy.figures().last_step, 100);
  EXPECT_EQ(policy.figures().completed, 1);
  EXPECT_EQ(policy.figures().stall, std::chrono::milliseconds(2));
}

TEST(CheckpointPolicy, IsCompleteWithoutTheWriterThatHasNothing) {
  CheckpointPolicy policy = by_steps();
  for (const std::int64_t step : {100, 200}) report(policy, "worker-0", step);
  report(policy, "worker-1", 100, Kind::kNothing);
  EXPECT_THAT(actions(policy), ElementsAre("complete 100", "complete 200"));
  report(policy, "worker-0", 300);
  EXPECT_THAT(actions(policy), ElementsAre("complete 300"));
  policy.on_membership(1, {"worker-0", "worker-1"}, at(2));
  report(policy, "worker-0", 400, Kind::kWritten, 1);
  EXPECT_THAT(actions(policy), IsEmpty()) << "it may have something now";
  report(policy, "worker-1", 400, Kind::kNothing, 2);
  policy.on_membership(2, {"worker-0", "worker-1"}, at(3));
  actions(policy);
  report(policy, "worker-0", 500, Kind::kWritten, 2);
  EXPECT_THAT(actions(policy), ElementsAre("complete 500")) << "it had said so before training began";
}

TEST(CheckpointPolicy, MayHaveTwoUnderWayWhereOneWriterIsFaster) {
  CheckpointPolicy policy = by_steps();
  for (const std::int64_t step : {100, 200}) report(policy, "worker-0", step);
  for (const std::int64_t step : {100, 200}) report(policy, "worker-1", step);
  EXPECT_THAT(actions(policy), ElementsAre("complete 100", "complete 200"));
}

TEST(CheckpointPolicy, LeavesOutWhatAWriterIsTooBusyForAndSaysSoOnce) {
  CheckpointPolicy policy = by_steps();
  report(policy, "worker-0", 100);
  report(policy, "worker-1", 100, Kind::kBusy);
  report(policy, "worker-1", 200, Kind::kBusy);
  report(policy, "worker-0", 200);
  EXPECT_THAT(actions(policy),
              ElementsAre("give up 100",
                          "report no checkpoint of step 100: worker-1 was still writing the one before; there is none "
                          "before it",
                          "give up 200"));
  EXPECT_EQ(policy.figures().left_out, 2);
  EXPECT_EQ(policy.figures().why_left_out,
            "the one before was still being written; use a longer --checkpoint-every, or a faster disk");
}

TEST(CheckpointPolicy, CountsWhatWasAskedForAndNeverCame) {
  CheckpointPolicy policy({.steps = 100}, true, 150);  // goes on from step 150
  policy.on_membership(0, {"worker-0"}, at(0));
  policy.on_steps("worker-0", 520, at(1));
  EXPECT_EQ(policy.figures().asked, 4) << "200, 300, 400 and 500";
  report(policy, "worker-0", 200);
  policy.on_complete(200, Status());
  report(policy, "worker-0", 300, Kind::kFailed);
  const CheckpointFigures figures = policy.figures();
  EXPECT_EQ(figures.completed, 1);
  EXPECT_EQ(figures.left_out, 3);
  EXPECT_EQ(figures.why_left_out,
            "steps went by, or training ended, before they could be written; use a longer --checkpoint-every")
      << "the reason of most";
}

TEST(CheckpointPolicy, CountsByTimeWhatTheTrainingHadTimeFor) {
  CheckpointPolicy policy({.seconds = 2}, false);
  EXPECT_EQ(policy.figures().asked, 0);
  policy.on_membership(0, {"shard-0"}, at(10));
  policy.on_steps("worker-0", 50, at(15.9));
  EXPECT_EQ(policy.figures().asked, 2);
  EXPECT_EQ(policy.figures().left_out, 2);
  EXPECT_THAT(policy.figures().why_left_out, HasSubstr("use a longer --checkpoint-every"));
}

TEST(CheckpointPolicy, SaysNothingOfReasonsWhereNoneIsLeftOut) {
  CheckpointPolicy policy = by_steps();
  policy.on_steps("worker-0", 199, at(1));
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, 100);
  policy.on_complete(100, Status());
  EXPECT_EQ(policy.figures().asked, 1);
  EXPECT_EQ(policy.figures().left_out, 0);
  EXPECT_EQ(policy.figures().why_left_out, "");
}

TEST(CheckpointPolicy, SaysWhyOneCouldNotBeWrittenAndWhichIsKept) {
  CheckpointPolicy policy = by_steps();
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, 100);
  policy.on_complete(100, Status());
  actions(policy);
  report(policy, "worker-0", 200, Kind::kFailed);
  EXPECT_THAT(actions(policy), ElementsAre("give up 200",
                                           "report no checkpoint of step 200: disk full; that of step 100 "
                                           "is kept"));
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, 300);
  actions(policy);
  policy.on_complete(300, Status::resource_exhausted("no room"));
  EXPECT_THAT(actions(policy), ElementsAre("give up 300")) << "it has been said that they cannot be written";
  EXPECT_EQ(policy.figures().last_step, 100);
}

TEST(CheckpointPolicy, BySecondsOrdersAStepAheadOfAll) {
  CheckpointPolicy policy = by_seconds();
  policy.on_tick(at(1.9));
  EXPECT_THAT(actions(policy), IsEmpty());
  policy.on_tick(at(2));
  EXPECT_THAT(actions(policy), ElementsAre("order 200")) << "0.5 s at 100 steps a second ahead of 150";
  policy.on_tick(at(4.1));
  EXPECT_THAT(actions(policy), IsEmpty()) << "one at a time";
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, 200);
  EXPECT_THAT(actions(policy), ElementsAre("complete 200"));
  policy.on_steps("worker-0", 400, at(4.1));
  policy.on_tick(at(4.2));
  EXPECT_EQ(actions(policy).size(), 1u);
}

TEST(CheckpointPolicy, OrdersFurtherAheadOnceSomebodyHasPassed) {
  CheckpointPolicy policy = by_seconds();
  policy.on_tick(at(2));
  actions(policy);
  report(policy, "worker-0", 200, Kind::kPassed);
  report(policy, "worker-1", 200);
  EXPECT_THAT(actions(policy), ElementsAre("give up 200")) << "no matter for a person";
  policy.on_tick(at(4));
  EXPECT_THAT(actions(policy), ElementsAre("order 250"));
}

TEST(CheckpointPolicy, WhereWorkersGoAtTheirOwnPaceOrdersAtOnce) {
  CheckpointPolicy policy = by_seconds(false);
  policy.on_tick(at(2));
  EXPECT_THAT(actions(policy), ElementsAre("order 150"));

  CheckpointPolicy steps({.steps = 100}, false);
  steps.on_membership(0, {"shard-0"}, at(0));
  steps.on_steps("worker-0", 99, at(1));
  steps.on_tick(at(1));
  EXPECT_THAT(actions(steps), IsEmpty());
  steps.on_steps("worker-0", 203, at(2));
  steps.on_tick(at(2));
  EXPECT_THAT(actions(steps), ElementsAre("order 203"));
  report(steps, "shard-0", 203);
  steps.on_tick(at(2));
  EXPECT_THAT(actions(steps), ElementsAre("complete 203")) << "the next is due at 300";
}

TEST(CheckpointPolicy, WhereWorkersGoAtTheirOwnPaceGoesByTheSlowest) {
  CheckpointPolicy policy({.steps = 100}, false);
  policy.on_membership(0, {"shard-0"}, at(0));
  policy.on_steps("worker-0", 40, at(1));
  policy.on_steps("worker-1", 900, at(1));
  policy.on_tick(at(1));
  EXPECT_THAT(actions(policy), IsEmpty());
  policy.on_lost("worker-0");
  policy.on_tick(at(1));
  EXPECT_THAT(actions(policy), ElementsAre("order 900")) << "nobody else is left";
}

TEST(CheckpointPolicy, GivesUpWhatIsUnderWayWhenAWriterIsLost) {
  CheckpointPolicy policy = by_steps();
  report(policy, "worker-0", 100);
  policy.on_lost("worker-1");
  EXPECT_THAT(actions(policy), ElementsAre("give up 100", HasSubstr("worker-1 is lost")));
  report(policy, "worker-0", 200);
  EXPECT_THAT(actions(policy), ElementsAre("complete 200")) << "it is awaited no more";
}

TEST(CheckpointPolicy, ForgetsTheMembershipBefore) {
  CheckpointPolicy policy = by_steps();
  report(policy, "worker-0", 100);
  policy.on_membership(1, {"worker-0", "worker-1"}, at(3));
  EXPECT_EQ(actions(policy).size(), 2u);
  report(policy, "worker-1", 100);
  EXPECT_THAT(actions(policy), IsEmpty());
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, 100, Kind::kWritten, 1);
  EXPECT_THAT(actions(policy), ElementsAre("complete 100"));
}

void complete(CheckpointPolicy& policy, std::int64_t step, std::int64_t membership_epoch = 0) {
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, step, Kind::kWritten, membership_epoch);
  policy.on_complete(step, Status());
  actions(policy);
}

TEST(CheckpointPolicy, TakesALastOneOutsideOfItsInterval) {
  CheckpointPolicy policy = by_steps();
  for (int i = 0; i <= 5; ++i) policy.on_steps("worker-0", i * 10, at(0.1 * i));
  EXPECT_FALSE(policy.last_wanted());
  policy.on_last_wanted(at(0.5));
  policy.on_tick(at(0.5));
  EXPECT_THAT(actions(policy), ElementsAre("order 100")) << "0.5 s at 100 steps a second ahead of 50";
  policy.on_tick(at(0.6));
  EXPECT_THAT(actions(policy), IsEmpty());
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, 100);
  policy.on_tick(at(0.7));
  EXPECT_THAT(actions(policy), ElementsAre("complete 100")) << "another one is not needed";
  EXPECT_FALSE(policy.last_wanted());
  policy.on_complete(100, Status());
  EXPECT_EQ(policy.last_wanted(), 100);
  policy.on_tick(at(9));
  EXPECT_THAT(actions(policy), IsEmpty());
}

TEST(CheckpointPolicy, TriesAgainUntilTheLastOneIsComplete) {
  CheckpointPolicy policy = by_seconds();
  policy.on_last_wanted(at(1.5));
  policy.on_tick(at(1.5));
  report(policy, "worker-0", 200, Kind::kPassed);
  EXPECT_THAT(actions(policy), ElementsAre("order 200", "give up 200"));
  policy.on_tick(at(1.6));
  for (const char* writer : {"worker-0", "worker-1"}) report(policy, writer, 250);
  EXPECT_THAT(actions(policy), ElementsAre("order 250", "complete 250"));
  policy.on_complete(250, Status::resource_exhausted("no room"));
  EXPECT_FALSE(policy.last_wanted());
  actions(policy);
  policy.on_steps("worker-0", 260, at(1.7));
  policy.on_tick(at(1.7));
  EXPECT_EQ(actions(policy).size(), 1u) << "there may be room now";
}

TEST(CheckpointPolicy, TakesOneUnderWayForTheLast) {
  CheckpointPolicy policy = by_seconds();
  policy.on_tick(at(2));
  EXPECT_THAT(actions(policy), ElementsAre("order 200"));
  policy.on_last_wanted(at(2));
  policy.on_tick(at(2.1));
  EXPECT_THAT(actions(policy), IsEmpty());
  complete(policy, 200);
  EXPECT_EQ(policy.last_wanted(), 200);
}

TEST(CheckpointPolicy, DoesNotTakeAnEarlierOneForTheLast) {
  CheckpointPolicy policy = by_steps();
  policy.on_steps("worker-0", 150, at(1));
  policy.on_last_wanted(at(1));
  complete(policy, 100);
  EXPECT_FALSE(policy.last_wanted()) << "it lacks 50 steps";
}

TEST(CheckpointPolicy, NeedsNoLastOneWhereNothingWasTrainedSinceTheOneBefore) {
  CheckpointPolicy policy = by_steps();
  policy.on_steps("worker-0", 100, at(1));
  complete(policy, 100);
  policy.on_last_wanted(at(2));
  EXPECT_EQ(policy.last_wanted(), 100);
}

TEST(CheckpointPolicy, TakesALastOneWhereStepsAreSlowAndTheirPaceIsNotKnown) {
  CheckpointPolicy policy = by_steps();
  policy.on_steps("worker-0", 1, at(20));
  policy.on_last_wanted(at(21));
  policy.on_tick(at(21));
  EXPECT_THAT(actions(policy), IsEmpty());
  policy.on_tick(at(21.5));
  EXPECT_THAT(actions(policy), ElementsAre("order 2")) << "the step that is under way";
}

TEST(CheckpointPolicy, TakesALastOneOfTheMembersThatAreLeft) {
  CheckpointPolicy policy = by_steps();
  policy.on_steps("worker-0", 150, at(1));
  policy.on_last_wanted(at(2));
  policy.on_membership(1, {"worker-0", "worker-1"}, at(3));
  policy.on_steps("worker-0", 101, at(4));  // they went back
  policy.on_tick(at(4));
  EXPECT_THAT(actions(policy), ElementsAre("order 102"));
  complete(policy, 102, 1);
  EXPECT_EQ(policy.last_wanted(), 102);
}

TEST(CheckpointPolicy, HasNoLastOneBeforeTrainingHasBegun) {
  CheckpointPolicy policy({.steps = 100}, true);
  EXPECT_FALSE(policy.has_begun());
  policy.on_last_wanted(at(1));
  policy.on_tick(at(2));
  EXPECT_THAT(actions(policy), IsEmpty());
}

TEST(CheckpointPolicy, IsNotDisturbedByWhoIsNoWriter) {
  CheckpointPolicy policy = by_steps();
  report(policy, "worker-9", 100);
  report(policy, "worker-9", 100, Kind::kFailed);
  EXPECT_THAT(actions(policy), IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments

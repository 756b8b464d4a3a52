#include "experiments/checkpoint/checkpoint_course.h"

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
std::vector<std::string> actions(CheckpointCourse& course) {
  std::vector<std::string> texts;
  for (const CheckpointAction& action : course.take_actions()) {
    constexpr const char* kNames[] = {"order ", "complete ", "give up ", "report "};
    texts.push_back(kNames[static_cast<int>(action.kind)] +
                    (action.text.empty() ? std::to_string(action.step) : action.text));
  }
  return texts;
}

void report(CheckpointCourse& course, const std::string& writer, std::int64_t step, Kind kind = Kind::kWritten,
            std::int64_t generation = 0) {
  course.on_report(writer, {.kind = kind,
                            .generation = generation,
                            .step = step,
                            .part = {.writer = writer},
                            .reason = "disk full",
                            .stall = std::chrono::milliseconds(2)});
}

CheckpointCourse by_steps() {
  CheckpointCourse course({.steps = 100}, true);
  course.on_generation(0, {"worker-0", "worker-1"}, at(0));
  return course;
}

// Makes 100 steps a second.
CheckpointCourse by_seconds(bool together = true) {
  CheckpointCourse course({.seconds = 2}, together);
  course.on_generation(0, {"worker-0", "worker-1"}, at(0));
  for (int i = 0; i <= 15; ++i) course.on_steps("worker-0", i * 10, at(0.1 * i));
  return course;
}

TEST(CheckpointCourse, ByStepsNeedsNoOrderWhereAllMoveTogether) {
  CheckpointCourse course = by_steps();
  course.on_steps("worker-0", 150, at(1));
  course.on_tick(at(1));
  EXPECT_THAT(actions(course), IsEmpty());
}

TEST(CheckpointCourse, IsCompleteOnceAllPartsAreWritten) {
  CheckpointCourse course = by_steps();
  report(course, "worker-1", 100);
  EXPECT_THAT(actions(course), IsEmpty());
  report(course, "worker-0", 100);
  const std::vector<CheckpointAction> done = course.take_actions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].kind, CheckpointAction::Kind::kComplete);
  EXPECT_EQ(done[0].parts.size(), 2u);
  EXPECT_FALSE(course.figures().last_step) << "the manifest is not written yet";
  course.on_complete(100, Status());
  EXPECT_EQ(course.figures().last_step, 100);
  EXPECT_EQ(course.figures().completed, 1);
  EXPECT_EQ(course.figures().stall, std::chrono::milliseconds(2));
}

TEST(CheckpointCourse, MayHaveTwoUnderWayWhereOneWriterIsFaster) {
  CheckpointCourse course = by_steps();
  for (const std::int64_t step : {100, 200}) report(course, "worker-0", step);
  for (const std::int64_t step : {100, 200}) report(course, "worker-1", step);
  EXPECT_THAT(actions(course), ElementsAre("complete 100", "complete 200"));
}

TEST(CheckpointCourse, LeavesOutWhatAWriterIsTooBusyForAndSaysSoOnce) {
  CheckpointCourse course = by_steps();
  report(course, "worker-0", 100);
  report(course, "worker-1", 100, Kind::kBusy);
  report(course, "worker-1", 200, Kind::kBusy);
  report(course, "worker-0", 200);
  EXPECT_THAT(actions(course),
              ElementsAre("give up 100",
                          "report no checkpoint of step 100: worker-1 was still writing the one before; there is none "
                          "before it",
                          "give up 200"));
  EXPECT_EQ(course.figures().left_out, 2);
  EXPECT_EQ(course.figures().why_left_out,
            "the one before was still being written; use a longer --checkpoint-every, or a faster disk");
}

TEST(CheckpointCourse, CountsWhatWasAskedForAndNeverCame) {
  CheckpointCourse course({.steps = 100}, true, 150);  // goes on from step 150
  course.on_generation(0, {"worker-0"}, at(0));
  course.on_steps("worker-0", 520, at(1));
  EXPECT_EQ(course.figures().asked, 4) << "200, 300, 400 and 500";
  report(course, "worker-0", 200);
  course.on_complete(200, Status());
  report(course, "worker-0", 300, Kind::kFailed);
  const CheckpointFigures figures = course.figures();
  EXPECT_EQ(figures.completed, 1);
  EXPECT_EQ(figures.left_out, 3);
  EXPECT_EQ(figures.why_left_out,
            "steps went by, or training ended, before they could be written; use a longer --checkpoint-every")
      << "the reason of most";
}

TEST(CheckpointCourse, CountsByTimeWhatTheTrainingHadTimeFor) {
  CheckpointCourse course({.seconds = 2}, false);
  EXPECT_EQ(course.figures().asked, 0);
  course.on_generation(0, {"shard-0"}, at(10));
  course.on_steps("worker-0", 50, at(15.9));
  EXPECT_EQ(course.figures().asked, 2);
  EXPECT_EQ(course.figures().left_out, 2);
  EXPECT_THAT(course.figures().why_left_out, HasSubstr("use a longer --checkpoint-every"));
}

TEST(CheckpointCourse, SaysNothingOfReasonsWhereNoneIsLeftOut) {
  CheckpointCourse course = by_steps();
  course.on_steps("worker-0", 199, at(1));
  for (const char* writer : {"worker-0", "worker-1"}) report(course, writer, 100);
  course.on_complete(100, Status());
  EXPECT_EQ(course.figures().asked, 1);
  EXPECT_EQ(course.figures().left_out, 0);
  EXPECT_EQ(course.figures().why_left_out, "");
}

TEST(CheckpointCourse, SaysWhyOneCouldNotBeWrittenAndWhichIsKept) {
  CheckpointCourse course = by_steps();
  for (const char* writer : {"worker-0", "worker-1"}) report(course, writer, 100);
  course.on_complete(100, Status());
  actions(course);
  report(course, "worker-0", 200, Kind::kFailed);
  EXPECT_THAT(actions(course), ElementsAre("give up 200",
                                           "report no checkpoint of step 200: disk full; that of step 100 "
                                           "is kept"));
  for (const char* writer : {"worker-0", "worker-1"}) report(course, writer, 300);
  actions(course);
  course.on_complete(300, Status::resource_exhausted("no room"));
  EXPECT_THAT(actions(course), ElementsAre("give up 300")) << "it has been said that they cannot be written";
  EXPECT_EQ(course.figures().last_step, 100);
}

TEST(CheckpointCourse, BySecondsOrdersAStepAheadOfAll) {
  CheckpointCourse course = by_seconds();
  course.on_tick(at(1.9));
  EXPECT_THAT(actions(course), IsEmpty());
  course.on_tick(at(2));
  EXPECT_THAT(actions(course), ElementsAre("order 200")) << "0.5 s at 100 steps a second ahead of 150";
  course.on_tick(at(4.1));
  EXPECT_THAT(actions(course), IsEmpty()) << "one at a time";
  for (const char* writer : {"worker-0", "worker-1"}) report(course, writer, 200);
  EXPECT_THAT(actions(course), ElementsAre("complete 200"));
  course.on_steps("worker-0", 400, at(4.1));
  course.on_tick(at(4.2));
  EXPECT_EQ(actions(course).size(), 1u);
}

TEST(CheckpointCourse, OrdersFurtherAheadOnceSomebodyHasPassed) {
  CheckpointCourse course = by_seconds();
  course.on_tick(at(2));
  actions(course);
  report(course, "worker-0", 200, Kind::kPassed);
  report(course, "worker-1", 200);
  EXPECT_THAT(actions(course), ElementsAre("give up 200")) << "no matter for a person";
  course.on_tick(at(4));
  EXPECT_THAT(actions(course), ElementsAre("order 250"));
}

TEST(CheckpointCourse, WhereWorkersGoAtTheirOwnPaceOrdersAtOnce) {
  CheckpointCourse course = by_seconds(false);
  course.on_tick(at(2));
  EXPECT_THAT(actions(course), ElementsAre("order 150"));

  CheckpointCourse steps({.steps = 100}, false);
  steps.on_generation(0, {"shard-0"}, at(0));
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

TEST(CheckpointCourse, WhereWorkersGoAtTheirOwnPaceGoesByTheSlowest) {
  CheckpointCourse course({.steps = 100}, false);
  course.on_generation(0, {"shard-0"}, at(0));
  course.on_steps("worker-0", 40, at(1));
  course.on_steps("worker-1", 900, at(1));
  course.on_tick(at(1));
  EXPECT_THAT(actions(course), IsEmpty());
  course.on_lost("worker-0");
  course.on_tick(at(1));
  EXPECT_THAT(actions(course), ElementsAre("order 900")) << "nobody else is left";
}

TEST(CheckpointCourse, GivesUpWhatIsUnderWayWhenAWriterIsLost) {
  CheckpointCourse course = by_steps();
  report(course, "worker-0", 100);
  course.on_lost("worker-1");
  EXPECT_THAT(actions(course), ElementsAre("give up 100", HasSubstr("worker-1 is lost")));
  report(course, "worker-0", 200);
  EXPECT_THAT(actions(course), ElementsAre("complete 200")) << "it is awaited no more";
}

TEST(CheckpointCourse, ForgetsTheGenerationBefore) {
  CheckpointCourse course = by_steps();
  report(course, "worker-0", 100);
  course.on_generation(1, {"worker-0", "worker-1"}, at(3));
  EXPECT_EQ(actions(course).size(), 2u);
  report(course, "worker-1", 100);
  EXPECT_THAT(actions(course), IsEmpty());
  for (const char* writer : {"worker-0", "worker-1"}) report(course, writer, 100, Kind::kWritten, 1);
  EXPECT_THAT(actions(course), ElementsAre("complete 100"));
}

TEST(CheckpointCourse, IsNotDisturbedByWhoIsNoWriter) {
  CheckpointCourse course = by_steps();
  report(course, "worker-9", 100);
  report(course, "worker-9", 100, Kind::kFailed);
  EXPECT_THAT(actions(course), IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments

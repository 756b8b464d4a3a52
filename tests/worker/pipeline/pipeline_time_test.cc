#include "worker/pipeline/pipeline_time.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate::worker {
namespace {

constexpr PipelineSchedule kBoth[] = {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward};

std::vector<double> ends_of(PipelineSchedule schedule, int microbatches, const std::vector<StageTimes>& stages,
                            double delay) {
  const int count = static_cast<int>(stages.size());
  return pipeline_ends({.schedule = schedule, .stages = count, .microbatches = microbatches}, stages, delay);
}
double step_of(PipelineSchedule schedule, int microbatches, const std::vector<StageTimes>& stages, double delay) {
  return std::ranges::max(ends_of(schedule, microbatches, stages, delay));
}

TEST(PipelineTime, IsThatOfTheFormulaWhereStagesAreAlikeAndMessagesTakeNoTime) {
  for (const PipelineSchedule schedule : kBoth) {
    for (const int stages : {1, 2, 4, 5}) {
      for (const int microbatches : {1, 3, 8}) {
        const std::vector<StageTimes> alike(static_cast<std::size_t>(stages), {.forward = 1, .backward = 2});
        const std::vector<double> ends = ends_of(schedule, microbatches, alike, 0);
        EXPECT_DOUBLE_EQ(ends.front(), 3 * (microbatches + stages - 1)) << name_of(schedule);
        EXPECT_DOUBLE_EQ(ends.back(), stages - 1 + 3 * microbatches);
      }
    }
  }
}

TEST(PipelineTime, IsThatOfTheSlowestStageWhereMicrobatchesAreMany) {
  const std::vector<StageTimes> stages{
      {.forward = 1, .backward = 2}, {.forward = 2, .backward = 4}, {.forward = 1, .backward = 2}};
  for (const PipelineSchedule schedule : kBoth) {
    EXPECT_NEAR(step_of(schedule, 1000, stages, 0) / 1000, 6, 0.01) << name_of(schedule);
  }
}

// In gpipe a step's messages follow each other only along the pipeline, there and back; under 1f1b a stage waits for a
// message there and one back before its next microbatch.
TEST(PipelineTime, CountsTheDelayOfMessagesThatFollowEachOther) {
  const std::vector<StageTimes> stages(4, {.forward = 1, .backward = 2});
  EXPECT_DOUBLE_EQ(step_of(PipelineSchedule::kGpipe, 4, stages, 0.5), 3 * 7 + 2 * 3 * 0.5);
  EXPECT_GT(step_of(PipelineSchedule::kOneForwardOneBackward, 4, stages, 0.5), 3 * 7 + 2 * 3 * 0.5);
}

TEST(PipelineTime, LetsALinkCarryOneMessageAfterTheOther) {
  const std::vector<StageTimes> stages{{.forward = 1, .backward = 1, .to_next = 10}, {.forward = 1, .backward = 1}};
  // Four there, the first sent at 1; the last is there at 41, and goes forward and back; its gradient goes first.
  EXPECT_DOUBLE_EQ(step_of(PipelineSchedule::kGpipe, 4, stages, 0), 41 + 2 + 4 * 10 + 1);
}

TEST(PipelineTime, BeginsWhereAStageMay) {
  const std::vector<StageTimes> stages(2, {.forward = 1, .backward = 1});
  const double begins[] = {0, 5};
  EXPECT_DOUBLE_EQ(std::ranges::max(pipeline_ends({.stages = 2}, stages, 0, begins)), 5 + 1 + 1 + 1);
}

TEST(PipelineTime, HasNoBubbleWhereWeightsAreStashed) {
  const PipelinePlace pipeline{.schedule = PipelineSchedule::kPipedream, .stages = 3};
  const std::vector<StageTimes> alike(3, {.forward = 1, .backward = 2});
  EXPECT_DOUBLE_EQ(pipeline_period(pipeline, alike, 0), 3);
  const double behind[] = {0, 1, 0};
  EXPECT_DOUBLE_EQ(pipeline_period(pipeline, alike, 0, behind), 4);
  EXPECT_NEAR(pipeline_period(pipeline, alike, 0.5), 3 + 4 * 0.5 / 3, 1e-9)
      << "two messages there and two back, in three steps";
  const std::vector<StageTimes> uneven{{.forward = 1, .backward = 1}, {.forward = 2, .backward = 3}, {}};
  EXPECT_DOUBLE_EQ(pipeline_period(pipeline, uneven, 0), 5);
  const std::vector<StageTimes> thin{{.to_next = 10}, {.to_next = 4}, {}};
  EXPECT_GE(pipeline_period(pipeline, thin, 0), 14) << "the second stage's link, one way";
}

TEST(PipelineTime, IsThatOfTheFormulaWithSeveralChunksAStage) {
  for (const int stages : {2, 4}) {
    for (const int chunks : {2, 3}) {
      const PipelinePlace pipeline{
          .schedule = PipelineSchedule::kInterleaved, .stages = stages, .microbatches = 2 * stages, .chunks = chunks};
      const std::vector<StageTimes> alike(static_cast<std::size_t>(stages * chunks), {.forward = 1, .backward = 2});
      EXPECT_DOUBLE_EQ(std::ranges::max(pipeline_ends(pipeline, alike, 0)), 3 * (2 * stages * chunks + stages - 1));
    }
  }
}

TEST(PipelineTime, CountsTheMessagesBetweenAllChunks) {
  const PipelinePlace pipeline{.schedule = PipelineSchedule::kInterleaved, .stages = 2, .microbatches = 2, .chunks = 2};
  const std::vector<StageTimes> alike(4, {.forward = 1, .backward = 1});
  EXPECT_DOUBLE_EQ(std::ranges::max(pipeline_ends(pipeline, alike, 0)), 2 * (4 + 1));
  // A microbatch has three messages there and three back.
  EXPECT_DOUBLE_EQ(std::ranges::max(pipeline_ends(pipeline, alike, 10)), 2 * (4 + 1) + 6 * 10);
}

TEST(PipelineTime, LetsThePassForWeightsWaitIfTheScheduleDoes) {
  const std::vector<StageTimes> thirds(4, {.forward = 1, .backward = 2, .weights = 1}),
      none(4, {.forward = 1, .backward = 2});
  EXPECT_DOUBLE_EQ(step_of(PipelineSchedule::kZeroBubble, 8, thirds, 0), 3 * 8 + 3);
  EXPECT_DOUBLE_EQ(step_of(PipelineSchedule::kZeroBubble, 8, none, 0), 3 * (8 + 3));
  EXPECT_DOUBLE_EQ(step_of(PipelineSchedule::kOneForwardOneBackward, 8, thirds, 0), 3 * (8 + 3));
}

}  // namespace
}  // namespace syncopate::worker

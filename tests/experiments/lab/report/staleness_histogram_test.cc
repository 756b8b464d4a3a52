#include "experiments/lab/report/staleness_histogram.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

StepRecord stale_step(std::int64_t epoch, double staleness, double loss) {
  StepRecord step;
  step.epoch = epoch;
  step.sync.staleness_mean = staleness;
  step.samples = 1;
  step.loss = loss;
  return step;
}

std::vector<StalenessBin> bins_of(std::span<const StepRecord> steps) {
  std::vector<const StepRecord*> pointers;
  for (const StepRecord& step : steps) pointers.push_back(&step);
  return staleness_histogram(pointers);
}

TEST(StalenessHistogram, CountsStepsByTheirRoundedStaleness) {
  const std::vector<StepRecord> steps = {stale_step(0, 0, 1), stale_step(0, 1.4, 2), stale_step(0, 0.5, 4),
                                         stale_step(0, 7, 1)};
  const std::vector<StalenessBin> bins = bins_of(steps);
  ASSERT_EQ(bins.size(), 3u);
  EXPECT_EQ(bins[0].staleness, 0);
  EXPECT_EQ(bins[0].steps, 1);
  EXPECT_EQ(bins[1].staleness, 1);
  EXPECT_EQ(bins[1].steps, 2);
  EXPECT_EQ(bins[1].loss, 3);
  EXPECT_EQ(bins[2].staleness, 7);
}

TEST(StalenessHistogram, WeighsLossesByTheirSamples) {
  std::vector<StepRecord> steps = {stale_step(0, 0, 1), stale_step(0, 0, 5)};
  steps[0].samples = 3;
  const std::vector<StalenessBin> bins = bins_of(steps);
  ASSERT_EQ(bins.size(), 1u);
  EXPECT_EQ(bins[0].steps, 2);
  EXPECT_EQ(bins[0].loss, 2);
  EXPECT_NEAR(bins[0].excess_loss, 0, 1e-12);
}

TEST(StalenessHistogram, LeavesOutStepsWithoutSamplesWhichHaveNoLoss) {
  StepRecord empty = stale_step(0, 0, 0);
  empty.samples = 0;
  const std::vector<StalenessBin> bins = bins_of(std::vector{stale_step(0, 0, 3), empty});
  ASSERT_EQ(bins.size(), 1u);
  EXPECT_EQ(bins[0].steps, 1);
  EXPECT_EQ(bins[0].loss, 3);
}

TEST(StalenessHistogram, TellsNothingWhereTheStaleStepsAloneHaveNoLoss) {
  StepRecord of_first_stage = stale_step(0, 3, 0);
  of_first_stage.samples = 0;
  EXPECT_TRUE(bins_of(std::vector{stale_step(0, 0, 3), of_first_stage}).empty());
  EXPECT_EQ(bins_of(std::vector{stale_step(0, 2, 3), of_first_stage}).size(), 1u);
}

// In each epoch the stale step has the higher loss; over all, it seems to have the lower one.
TEST(StalenessHistogram, ComparesLossesWithThoseOfTheSameEpoch) {
  const std::vector<StepRecord> steps = {stale_step(0, 0, 9), stale_step(0, 0, 9), stale_step(0, 2, 12),
                                         stale_step(1, 0, 1), stale_step(1, 2, 3), stale_step(1, 2, 3),
                                         stale_step(1, 2, 3)};
  const std::vector<StalenessBin> bins = bins_of(steps);
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_GT(bins[0].loss, bins[1].loss);
  EXPECT_NEAR(bins[0].excess_loss, (-1 - 1 - 1.5) / 3, 1e-12);
  EXPECT_NEAR(bins[1].excess_loss, (2 + 3 * 0.5) / 4, 1e-12);
}

TEST(StalenessHistogram, IsToldInOneLineWithItsTailAsOne) {
  std::vector<StalenessBin> bins;
  for (std::int64_t i = 0; i < 8; ++i) bins.push_back({.staleness = i, .steps = 10, .loss = static_cast<double>(i)});
  EXPECT_EQ(staleness_text(bins),
            "0: 12.5 % loss 0, 1: 12.5 % loss 1, 2: 12.5 % loss 2, 3: 12.5 % loss 3, 4 to 7: 50.0 % loss 5.5");
  EXPECT_EQ(staleness_text(std::span(bins).first(2)), "0: 50.0 % loss 0, 1: 50.0 % loss 1");
}

TEST(StalenessHistogram, SaysNothingWhereNothingWasStale) {
  EXPECT_EQ(staleness_text({}), "");
  EXPECT_EQ(staleness_text(bins_of(std::vector{stale_step(0, 0, 1)})), "");
  EXPECT_TRUE(bins_of({}).empty());
}

}  // namespace
}  // namespace syncopate::experiments

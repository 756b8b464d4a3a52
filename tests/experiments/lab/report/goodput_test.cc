#include "experiments/lab/report/goodput.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;

// A step of 10 ms that ends at `end`, in which the worker computed for 8 ms: 2 forward, 5 backward, 1 of its update.
StepRecord step_of(std::int64_t number, milliseconds end) {
  StepRecord step;
  step.step = number;
  step.end = TimePoint() + end;
  step.total = milliseconds(10);
  step.forward = milliseconds(2);
  step.backward = milliseconds(5);
  step.sync.optimizer = milliseconds(1);
  step.sync.exposed_wait = milliseconds(2);
  return step;
}

// Steps one after the other, the first of them number `first`, which begins at `begin`.
std::vector<StepRecord> steps_from(std::int64_t first, int count, milliseconds begin = milliseconds(0)) {
  std::vector<StepRecord> steps;
  for (int i = 0; i < count; ++i) steps.push_back(step_of(first + i, begin + (i + 1) * milliseconds(10)));
  return steps;
}

using Job = std::vector<std::vector<StepRecord>>;

std::optional<double> goodput_of(const Job& job) {
  std::vector<WorkerSteps> workers;
  for (const auto& steps : job) workers.push_back({.rank = static_cast<int>(workers.size()), .steps = steps});
  return make_report(workers, {}, {}).goodput;
}

TEST(Goodput, IsTheShareOfTheTimeInWhichWorkersCompute) {
  EXPECT_DOUBLE_EQ(*goodput_of({steps_from(0, 10)}), 0.8);
  EXPECT_DOUBLE_EQ(*goodput_of({steps_from(0, 10), steps_from(0, 10)}), 0.8);
}

TEST(Goodput, CountsNoWait) {
  Job job = {steps_from(0, 10), steps_from(0, 10)};
  for (StepRecord& step : job[1]) step.forward = milliseconds(0);
  for (StepRecord& step : job[1]) step.data = milliseconds(1), step.straggle = milliseconds(1);
  // Communication beside backward costs nothing that the exposed wait does not say.
  for (StepRecord& step : job[1]) step.sync.communication = milliseconds(7);
  EXPECT_DOUBLE_EQ(*goodput_of(job), (0.8 + 0.6) / 2);
}

TEST(Goodput, CountsNothingOfAWorkerThatIsGone) {
  EXPECT_DOUBLE_EQ(*goodput_of({steps_from(0, 10), steps_from(0, 4)}), (10 + 4) * 0.8 / 20);
  EXPECT_DOUBLE_EQ(*goodput_of({steps_from(0, 10), {}}), 0.4) << "it has never made a step, and was asked for";
}

// In 200 ms: ten steps, 40 ms until the loss is noticed and the others go on, six steps, and with the fourth worker
// again.
TEST(Goodput, CountsNothingOfTheTimeBetweenTwoSteps) {
  std::vector<StepRecord> steps = steps_from(0, 10);
  const std::vector<StepRecord> later = steps_from(10, 6, milliseconds(140));
  steps.insert(steps.end(), later.begin(), later.end());
  EXPECT_DOUBLE_EQ(*goodput_of({steps}), 16 * 8 / 200.0);
}

TEST(Goodput, CountsStepsThatWereUndoneOnceTheyAreMadeAgain) {
  // Eight steps, then back to a checkpoint of step 5, and five more.
  std::vector<StepRecord> steps = steps_from(0, 8);
  const std::vector<StepRecord> again = steps_from(5, 5, milliseconds(80));
  steps.insert(steps.end(), again.begin(), again.end());
  EXPECT_DOUBLE_EQ(*goodput_of({steps}), 10 * 8 / 130.0);
}

TEST(Goodput, CountsAGradientAsFarAsItIsInAnUpdate) {
  Job job = {steps_from(0, 4)};
  job[0][1].sync.dropped = 0.25;
  job[0][2].sync.dropped = 1;
  job[0][3].sync.skipped = 1;
  EXPECT_DOUBLE_EQ(*goodput_of(job), 1.75 * 8 / 40);
}

TEST(Goodput, IsThatOfWhatAResumedRunDidItself) {
  EXPECT_DOUBLE_EQ(*goodput_of({steps_from(500, 10), steps_from(500, 5)}), 15 * 8 / 200.0);
}

TEST(Goodput, IsZeroWhereNothingWasKept) {
  Job job = {steps_from(0, 2)};
  for (StepRecord& step : job[0]) step.sync.dropped = 1;
  EXPECT_EQ(goodput_of(job), 0.0);
}

TEST(Goodput, IsNoneWhereNobodyKnowsWhatWasComputed) {
  EXPECT_FALSE(goodput_of({}));
  EXPECT_FALSE(goodput_of({{}, {}}));
  Job job = {steps_from(0, 3)};
  for (StepRecord& step : job[0]) step.forward = step.backward = step.sync.optimizer = Duration::zero();
  EXPECT_FALSE(goodput_of(job));
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/lab/report/run_report.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;

struct Worker {
  int rank = 0;
  bool lost = false;
  std::vector<StepRecord> steps = {};
};

// `count` steps of `step` each, beginning at `begin`, of `samples` samples.
Worker steady(int rank, Duration begin, milliseconds step, int count, std::int64_t samples) {
  Worker worker{.rank = rank};
  for (int i = 0; i < count; ++i) {
    StepRecord record;
    record.step = i;
    record.end = TimePoint() + begin + (i + 1) * step;
    record.total = step;
    record.samples = samples;
    worker.steps.push_back(record);
  }
  return worker;
}

RunReport report_of(std::span<const Worker> workers, const ReportOptions& options = {}) {
  std::vector<WorkerSteps> steps;
  for (const Worker& worker : workers) steps.push_back({worker.rank, worker.lost, worker.steps});
  return make_report(steps, {}, options);
}

TEST(Statistics, AreExactOnSmallSets) {
  const std::array<double, 4> four = {4, 1, 3, 2};
  EXPECT_EQ(median(four), 2.5);
  EXPECT_EQ(percentile(four, 0.5), 2);
  EXPECT_EQ(percentile(four, 0.95), 4);
  EXPECT_EQ(percentile(four, 0.01), 1);
  EXPECT_EQ(mean(four), 2.5);
  EXPECT_EQ(spread_of(four), (Spread{2.5, 1, 4}));
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(percentile({}, 0.95), 0);
  std::array<double, 20> twenty{};
  for (std::size_t i = 0; i < 20; ++i) twenty[i] = static_cast<double>(20 - i);
  EXPECT_EQ(percentile(twenty, 0.95), 19);
}

TEST(RunReport, CountsTheWholeJobAsThroughput) {
  // Worker 0 is done at 100 ms; worker 1, at 145 ms. Neither its tail nor any warm-up is left out.
  const std::array workers = {steady(0, milliseconds(0), milliseconds(10), 10, 10),
                              steady(1, milliseconds(5), milliseconds(20), 7, 10)};
  const RunReport report = report_of(workers, {.warmup_steps = 2, .target_accuracy = 0});
  EXPECT_EQ(report.total_steps, 17);
  EXPECT_EQ(report.total_samples, 170);
  EXPECT_EQ(report.used_samples, 170);
  EXPECT_DOUBLE_EQ(report.training_seconds, 0.145);
  EXPECT_DOUBLE_EQ(*report.samples_per_second, 170 / 0.145);
}

TEST(RunReport, CountsNoSampleOfAGradientThatWasDropped) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(10), 4, 100),
                        steady(1, milliseconds(0), milliseconds(10), 4, 100)};
  workers[1].steps[1].sync.dropped = 1;
  workers[1].steps[3].sync.dropped = 0.25;  // of its chunks
  const RunReport report = report_of(workers);
  EXPECT_EQ(report.total_samples, 800);
  EXPECT_EQ(report.used_samples, 675);
  EXPECT_DOUBLE_EQ(*report.samples_per_second, 675 / 0.04);
  EXPECT_DOUBLE_EQ(report.window->samples_per_second, 675 / 0.04);
  EXPECT_DOUBLE_EQ(report.dropped, 1.25 / 8);
}

TEST(RunReport, CountsAStepThatWasUndoneAndMadeAgainOnce) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(10), 6, 100)};
  for (std::size_t made = 3; made < 6; ++made) workers[0].steps[made].step -= 2;  // 0 1 2, then again 1 2 3
  const RunReport report = report_of(workers);
  EXPECT_EQ(report.total_samples, 600);
  EXPECT_EQ(report.used_samples, 400);
}

TEST(RunReport, CountsAllWorkersOverOneCommonWindow) {
  // Worker 0 ends its warm-up at 20 ms and its last step at 100 ms; worker 1, at 45 ms and 145 ms. Window (45, 100]:
  // steps of worker 0 that end at 50, 60, 70, 80, 90, 100; of worker 1 at 65, 85. Of the first and of those that the
  // window cuts a part counts: 5.5 and 2.75 steps.
  const std::array workers = {steady(0, milliseconds(0), milliseconds(10), 10, 10),
                              steady(1, milliseconds(5), milliseconds(20), 7, 10)};
  const RunReport report = report_of(workers, {.warmup_steps = 2, .target_accuracy = 0});
  ASSERT_TRUE(report.window.has_value());
  EXPECT_EQ(report.window->seconds, 0.055);
  EXPECT_EQ(report.window->steps, 8);
  EXPECT_DOUBLE_EQ(report.window->samples_per_second, 82.5 / 0.055);
  EXPECT_EQ(report.step_ms_median, 10);
  EXPECT_EQ(report.step_ms_p95, 20);
}

// As in a simulated cluster, where all go in step to the nanosecond: one worker's end is not the others' loss.
TEST(RunReport, CountsTheLastStepOfEachWorkerWhereTheyGoInStep) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(10), 4, 10),
                        steady(1, std::chrono::nanoseconds(5), milliseconds(10), 4, 10)};
  const RunReport report = report_of(workers, {.warmup_steps = 2, .target_accuracy = 0});
  ASSERT_TRUE(report.window.has_value());
  EXPECT_NEAR(report.window->samples_per_second, 2000, 0.01);
}

TEST(RunReport, LeavesOutAStepThatEndsAsTheWindowBegins) {
  // Window (40, 100] ms: worker 0's step that ends at 40 was made before it.
  const std::array workers = {steady(0, milliseconds(0), milliseconds(10), 10, 10),
                              steady(1, milliseconds(0), milliseconds(20), 5, 10)};
  const RunReport report = report_of(workers, {.warmup_steps = 2, .target_accuracy = 0});
  ASSERT_TRUE(report.window.has_value());
  EXPECT_EQ(report.window->steps, 6 + 3);
  EXPECT_DOUBLE_EQ(report.window->samples_per_second, 90 / 0.06);
}

TEST(RunReport, BeginsWithTheFirstStepWhereNothingIsWarmUp) {
  const std::array workers = {steady(0, milliseconds(100), milliseconds(10), 5, 8)};
  const RunReport report = report_of(workers);
  ASSERT_TRUE(report.window.has_value());
  EXPECT_EQ(report.window->seconds, 0.05);
  EXPECT_DOUBLE_EQ(report.window->samples_per_second, 800);
}

TEST(RunReport, SpeaksOfAllStepsWhereWorkersShareNoWindow) {
  const std::array apart = {steady(0, milliseconds(0), milliseconds(10), 5, 8),
                            steady(1, milliseconds(60), milliseconds(30), 5, 8)};
  const RunReport report = report_of(apart);
  EXPECT_FALSE(report.window.has_value());
  EXPECT_DOUBLE_EQ(*report.samples_per_second, 80 / 0.21);
  EXPECT_EQ(report.step_ms_p95, 30);
  EXPECT_EQ(report.split_ms.step, 20);
}

TEST(RunReport, HasAThroughputWhereAWorkerNeverEndsItsWarmUp) {
  const std::array brief = {steady(0, milliseconds(0), milliseconds(10), 30, 8),
                            steady(1, milliseconds(0), milliseconds(100), 3, 8)};
  const RunReport report = report_of(brief, {.warmup_steps = 3, .target_accuracy = 0});
  EXPECT_FALSE(report.window.has_value());
  EXPECT_DOUBLE_EQ(*report.samples_per_second, 33 * 8 / 0.3);
}

TEST(RunReport, HasNoThroughputWithoutAStep) {
  const RunReport report = make_report({}, {}, {});
  EXPECT_FALSE(report.samples_per_second.has_value());
  EXPECT_FALSE(report.window.has_value());
}

TEST(RunReport, ALostWorkerCountsButDoesNotEndTheWindow) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(10), 10, 10),
                        steady(1, milliseconds(0), milliseconds(10), 4, 10)};
  EXPECT_EQ(report_of(workers).window->seconds, 0.04);
  workers[1].lost = true;
  const RunReport report = report_of(workers);
  EXPECT_EQ(report.window->seconds, 0.1);
  EXPECT_DOUBLE_EQ(report.window->samples_per_second, 1400);
  EXPECT_EQ(*report.samples_per_second, 1400);
  workers[1].steps.clear();
  EXPECT_DOUBLE_EQ(report_of(workers).window->samples_per_second, 1000);
}

TEST(RunReport, SaysWhoWasMadeSlowAndByHowMuch) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(16), 3, 1),
                        steady(1, milliseconds(0), milliseconds(16), 3, 1)};
  for (StepRecord& step : workers[1].steps) {
    step.forward = milliseconds(1);
    step.backward = milliseconds(3);
    step.straggle = milliseconds(8);
  }
  workers[1].steps[0].straggle = milliseconds(16);
  const RunReport report = report_of(workers, {.warmup_steps = 1});
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].worker, 1);
  EXPECT_EQ(report.stragglers[0].delay_ms_mean, 8);
  EXPECT_EQ(report.stragglers[0].delay_ms_max, 8) << "the first step was warm-up";
  EXPECT_EQ(report.stragglers[0].slowdown, 3);
  EXPECT_EQ(report.split_ms.straggle, 4) << "of a step, over both workers";
  EXPECT_EQ(report.split_ms.other, 16 - 2 - 4);
}

TEST(RunReport, SplitsTheStepIntoPartsThatSumToIt) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(16), 2, 1)};
  for (StepRecord& step : workers[0].steps) {
    step.data = milliseconds(1);
    step.forward = milliseconds(2);
    step.backward = milliseconds(4);
    step.sync.exposed_wait = milliseconds(3);
    step.sync.optimizer = milliseconds(1);
  }
  workers[0].steps[1].sync.exposed_wait = milliseconds(5);
  workers[0].steps[0].sync.communication = milliseconds(7);  // 4 hidden
  workers[0].steps[1].sync.communication = milliseconds(1);  // none hidden, though the wait was longer
  const RunReport report = report_of(workers);
  EXPECT_EQ(report.split_ms.step, 16);
  EXPECT_EQ(report.split_ms.exposed_wait, 4);
  EXPECT_EQ(report.split_ms.other, 16 - 1 - 2 - 4 - 4 - 1);
  EXPECT_EQ(report.communication_ms, 4);
  EXPECT_EQ(report.hidden_communication_ms, 2);
  EXPECT_EQ(hidden_part(report), 0.5);
}

TEST(RunReport, HidesNoCommunicationThatTheComputeThreadStoodWaitingFor) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(16), 3, 1)};
  for (StepRecord& step : workers[0].steps) {
    step.sync.communication = milliseconds(5);
    step.sync.exposed_wait = milliseconds(5 + step.step);
  }
  EXPECT_EQ(hidden_part(report_of(workers)), 0);
  for (StepRecord& step : workers[0].steps) step.sync.communication = {};
  EXPECT_EQ(hidden_part(report_of(workers)), std::nullopt);
}

TEST(RunReport, LeavesWarmUpOutOfBytesAndStaleness) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(1), 5, 1)};
  for (StepRecord& step : workers[0].steps) {
    const std::int64_t n = step.step;
    step.sync.bytes_out = 100 * n;
    step.sync.bytes_in = 1000 * n;
    step.sync.staleness_mean = n == 0 ? 99 : static_cast<double>(n);
    step.sync.staleness_max = n == 0 ? 99 : n + 1;
  }
  const RunReport report = report_of(workers, {.warmup_steps = 1, .target_accuracy = 0});
  EXPECT_EQ(report.bytes_out_per_step, 250);
  EXPECT_EQ(report.bytes_in_per_step, 2500);
  EXPECT_EQ(report.staleness_mean, 2.5);
  EXPECT_EQ(report.staleness_p95, 4);
  EXPECT_EQ(report.staleness_max, 5);
}

TEST(RunReport, CountsAWorkersWarmUpFromItsFirstStepInTheRun) {
  std::array workers = {steady(0, milliseconds(0), milliseconds(10), 10, 10),
                        steady(1, milliseconds(0), milliseconds(10), 10, 10)};
  for (StepRecord& step : workers[1].steps) step.step += 500;  // of a run that goes on from a checkpoint
  for (StepRecord& step : workers[0].steps) step.step += 40;
  EXPECT_EQ(report_of(workers, {.warmup_steps = 2}).window->seconds, 0.08);
}

// What it had learnt before, the first batch after a checkpoint does not tell.
TEST(RunReport, KnowsTheFirstLossOfAWholeRunAlone) {
  const std::array workers = {steady(0, milliseconds(0), milliseconds(10), 3, 10)};
  EXPECT_TRUE(report_of(workers).first_train_loss.has_value());
  EXPECT_FALSE(report_of(workers, {.is_resumed = true}).first_train_loss.has_value());
}

TEST(RunReport, FindsWhenTheTargetWasFirstReached) {
  const std::array<EvalRecord, 4> evals = {
      {{.epoch = 1, .step = 10, .samples_seen = 100, .training_seconds = 1, .accuracy = 0.90, .loss = 0.5},
       {.epoch = 2, .step = 20, .samples_seen = 200, .training_seconds = 2, .accuracy = 0.95, .loss = 0.4},
       {.epoch = 3, .step = 30, .samples_seen = 300, .training_seconds = 3, .accuracy = 0.94, .loss = 0.3},
       {.epoch = 4, .step = 40, .samples_seen = 400, .training_seconds = 4, .accuracy = 0.96, .loss = 0.2}}};
  const RunReport report = make_report({}, evals, {.warmup_steps = 0, .target_accuracy = 0.95});
  EXPECT_EQ(report.final_test_accuracy, 0.96);
  EXPECT_EQ(report.final_test_loss, 0.2);
  EXPECT_EQ(report.seconds_to_target, 2);
  EXPECT_EQ(report.samples_to_target, 200);
  EXPECT_EQ(report.seconds_to_target_resolution, 1);
  EXPECT_FALSE(make_report({}, evals, {.warmup_steps = 0, .target_accuracy = 0.97}).seconds_to_target.has_value());
  EXPECT_FALSE(make_report({}, evals, {}).seconds_to_target.has_value());
  EXPECT_FALSE(make_report({}, {}, {}).final_test_accuracy.has_value());
}

TEST(RunReport, OfTheMiddleHasTheMedianThroughput) {
  std::array<RunReport, 4> reports;
  reports[0].samples_per_second = 4;
  reports[1].samples_per_second = 2;
  reports[3].samples_per_second = 3;
  EXPECT_EQ(&middle_report(reports), &reports[1]) << "one without a step is the least";
  EXPECT_EQ(&middle_report(std::span(reports).first(1)), &reports[0]);
}

TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }

// Steps that end at these times, each begun where the last one ended.
std::vector<StepRecord> steps(const std::vector<int>& ends) {
  std::vector<StepRecord> steps;
  int begin = 0;
  for (const int end : ends) {
    StepRecord step;
    step.end = at(end);
    step.total = milliseconds(end - begin);
    steps.push_back(step);
    begin = end;
  }
  return steps;
}

RecoveryTimes recovery(TimePoint fault, const std::vector<std::vector<StepRecord>>& workers) {
  std::vector<WorkerSteps> of_workers;
  for (const std::vector<StepRecord>& steps : workers) of_workers.push_back({.steps = steps});
  return recovery_after(fault, of_workers);
}

TEST(RecoveryTimes, AreThoseOfTheFirstStepsThatWereBegunAfterTheFault) {
  const RecoveryTimes times = recovery(at(15), {steps({10, 20, 30}), steps({12, 300, 330}), steps({10})});
  EXPECT_EQ(times.first, milliseconds(15)) << "the step to 20 was under way";
  EXPECT_EQ(times.all, milliseconds(315)) << "the last worker is lost";
}

TEST(RecoveryTimes, AreNoneWhereNobodyGoesOn) {
  const RecoveryTimes times = recovery(at(25), {steps({10, 20, 30}), {}});
  EXPECT_FALSE(times.first);
  EXPECT_FALSE(times.all);
}

TEST(RecoveryTimes, CountAStepThatIsBegunWithTheFault) {
  EXPECT_EQ(recovery(at(20), {steps({10, 20, 30})}).first, milliseconds(10));
}

EvalRecord eval(double seconds, std::int64_t samples, double accuracy) {
  return {.samples_seen = samples, .training_seconds = seconds, .accuracy = accuracy};
}

TEST(TargetCrossing, LiesOnTheLineBetweenTheEvaluationsAroundIt) {
  const std::vector<EvalRecord> evals{eval(2, 1000, 0.80), eval(6, 3000, 0.90), eval(10, 5000, 0.98)};
  const std::optional<TargetCrossing> crossing = target_crossing(evals, 0.95);
  ASSERT_TRUE(crossing.has_value());
  EXPECT_NEAR(crossing->seconds, 8.5, 1e-9);
  EXPECT_NEAR(crossing->samples, 4250, 1e-6);
  EXPECT_EQ(crossing->resolution_seconds, 4);
  EXPECT_EQ(crossing->resolution_samples, 2000);
}

TEST(TargetCrossing, IsTheFirstOneWhateverComesAfter) {
  const std::vector<EvalRecord> evals{eval(1, 100, 0.5), eval(2, 200, 0.7), eval(3, 300, 0.4), eval(4, 400, 0.9)};
  EXPECT_NEAR(target_crossing(evals, 0.6)->seconds, 1.5, 1e-9);
  EXPECT_NEAR(target_crossing(evals, 0.7)->seconds, 2, 1e-9) << "an evaluation that comes to it just so";
}

TEST(TargetCrossing, KnowsNothingOfBeforeTheFirstEvaluation) {
  const TargetCrossing crossing = *target_crossing(std::vector{eval(3, 600, 0.9), eval(5, 900, 0.95)}, 0.8);
  EXPECT_EQ(crossing.seconds, 3);
  EXPECT_EQ(crossing.samples, 600);
  EXPECT_EQ(crossing.resolution_seconds, 3);
}

TEST(TargetCrossing, GoesByTheTimeOfTheWeightsAndNotOfTheirEvaluation) {
  const std::vector<EvalRecord> evals{eval(6, 3000, 0.90), eval(2, 1000, 0.80)};
  EXPECT_NEAR(target_crossing(evals, 0.85)->seconds, 4, 1e-9);
}

TEST(TargetCrossing, IsNoneWhereNoEvaluationComesToTheTarget) {
  EXPECT_FALSE(target_crossing(std::vector{eval(1, 100, 0.79)}, 0.8).has_value());
  const std::vector resumed{eval(3, 600, 0.9), eval(5, 900, 0.95)};
  EXPECT_FALSE(target_crossing(resumed, 0.8, true).has_value()) << "it was reached before the checkpoint";
  EXPECT_TRUE(target_crossing(resumed, 0.92, true).has_value());
  EXPECT_FALSE(target_crossing({}, 0.8).has_value());
}

TEST(TargetCrossing, AgreesWithAStepThroughTheLine) {
  const std::vector<EvalRecord> evals{eval(0.5, 50, 0.11), eval(1.25, 150, 0.53), eval(2.75, 400, 0.87)};
  for (double target = 0.12; target < 0.87; target += 0.01) {
    // Small steps along the broken line until it is at the target.
    double seconds = 0.5, figure = 0.11;
    while (figure < target) {
      seconds += 1e-5;
      figure = seconds < 1.25 ? 0.11 + (0.53 - 0.11) * (seconds - 0.5) / 0.75
                              : 0.53 + (0.87 - 0.53) * (seconds - 1.25) / 1.5;
    }
    EXPECT_NEAR(target_crossing(evals, target)->seconds, seconds, 2e-5) << target;
  }
}

}  // namespace
}  // namespace syncopate::experiments

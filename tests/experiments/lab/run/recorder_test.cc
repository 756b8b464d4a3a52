#include "experiments/lab/run/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "experiments/checkpoint/safetensors.h"
#include "tests/support/resolved.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kBegin{100s};
constexpr std::int64_t kSamples = 10;  // of a step

// A recorder of a run of two workers.
class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    config_.mode = Mode::kPs;
    config_.workers = 2;
    config_.warmup_steps = 0;
    config_.output = folder_.path() / "run";
    job_.layout.add("w", {16});
    job_.steps_per_epoch = 100;
    job_.total_steps = 100;
  }

  // Training begins.
  Recorder& begin() {
    run_ = resolved(config_);
    Result<ResultsWriter> results = ResultsWriter::create(run_, Environment{});
    EXPECT_TRUE(results.ok()) << results.status().message();
    results_.emplace(std::move(*results));
    recorder_.emplace(run_, job_, *results_, console_);
    recorder_->on_training_begins(kBegin);
    return *recorder_;
  }
  // The worker's next step, which ended so long after training began.
  void step(int worker, Duration end, Duration total) {
    StepRecord record;
    record.step = steps_[worker]++;
    record.end = kBegin + end;
    record.total = total;
    record.samples = kSamples;
    recorder_->on_steps(worker, std::vector{record});
  }
  RunReport report() {
    EXPECT_TRUE(recorder_->finish().ok());
    return recorder_->report();
  }
  std::filesystem::path model_file() const { return results_->model_path(); }

  testing_support::TemporaryFolder folder_;
  RunRequest config_;
  ResolvedRun run_;
  JobFacts job_;
  Console console_{true};
  std::optional<ResultsWriter> results_;
  std::optional<Recorder> recorder_;
  int steps_[2] = {};
};

TEST_F(RecorderTest, CountsTheSamplesOfAllWorkersUntilASnapshotAlsoThoseThatAreHeardOfLater) {
  config_.target_accuracy = 0.9;
  Recorder& recorder = begin();
  step(0, 1000ms, 1000ms);
  step(1, 1500ms, 1500ms);
  recorder.on_evaluation({.taken = kBegin + 2600ms, .accuracy = 0.95});
  EXPECT_TRUE(recorder.on_tick(kBegin + 3s).ok());  // records of before may still be under way
  step(0, 2000ms, 1000ms);
  step(1, 2500ms, 1000ms);
  step(0, 3000ms, 1000ms);
  const RunReport report = this->report();
  EXPECT_EQ(report.samples_to_target, 4 * kSamples);
  EXPECT_DOUBLE_EQ(report.seconds_to_target.value_or(0), 2.6);
}

TEST_F(RecorderTest, CountsWhatIsHeardBelatedlyAfterATimeInWhichNobodyListened) {
  Recorder& recorder = begin();
  EXPECT_TRUE(recorder.on_tick(kBegin).ok());
  step(0, 1000ms, 1000ms);
  recorder.on_evaluation({.taken = kBegin + 2600ms, .accuracy = 0.95});
  EXPECT_TRUE(recorder.on_tick(kBegin + 60s).ok());  // it was stopped, and hears what was said meanwhile by and by
  step(1, 1500ms, 1500ms);
  EXPECT_TRUE(recorder.on_tick(kBegin + 60500ms).ok());
  step(1, 2500ms, 1000ms);
  EXPECT_TRUE(recorder.on_tick(kBegin + 61s).ok());
  ASSERT_EQ(recorder.evals().size(), 1u);
  EXPECT_EQ(recorder.evals().front().samples_seen, 3 * kSamples);
}

TEST_F(RecorderTest, CountsEachSampleOnceHoweverOftenItEvaluates) {
  Recorder& recorder = begin();
  for (int i = 1; i <= 2000; ++i) {
    for (const int worker : {0, 1}) step(worker, i * 1ms, 1ms);
    if (i % 500 == 0) recorder.on_evaluation({.taken = kBegin + i * 1ms, .accuracy = 0.5});
    EXPECT_TRUE(recorder.on_tick(kBegin + i * 1ms).ok());
  }
  EXPECT_EQ(report().total_samples, 4000 * kSamples);
  std::vector<std::int64_t> seen;
  for (const EvalRecord& eval : recorder.evals()) seen.push_back(eval.samples_seen);
  EXPECT_THAT(seen, ElementsAre(1000 * kSamples, 2000 * kSamples, 3000 * kSamples, 4000 * kSamples));
  const auto is_last_step = [](const WorkerSteps& worker) { return worker.steps.back().step == 1999; };
  EXPECT_TRUE(std::ranges::all_of(recorder.workers(), is_last_step));
}

TEST_F(RecorderTest, RecordsWhatTrainingCameToSinceTheLastEvaluation) {
  Recorder& recorder = begin();
  StepRecord record;
  record.samples = 10;
  for (int i = 0; i < 4; ++i) {
    record.step = i;
    record.end = kBegin + (i + 1) * 1s;
    record.loss = 4 - i;
    record.accuracy = 0.25 * i;
    if (i == 3) record.samples = 30;
    recorder.on_steps(i % 2, std::vector{record});
  }
  recorder.on_evaluation({.taken = kBegin + 2500ms, .accuracy = 0.5, .validation = {{.accuracy = 0.25, .loss = 3}}});
  recorder.on_evaluation({.taken = kBegin + 4500ms, .accuracy = 0.5});
  recorder.on_evaluation({.taken = kBegin + 4600ms, .final = true, .accuracy = 0.5});
  ASSERT_TRUE(recorder.finish().ok());
  const std::vector<EvalRecord>& evals = recorder.evals();
  ASSERT_EQ(evals.size(), 3u);
  EXPECT_EQ(evals[0].train_loss, 3.5);
  EXPECT_EQ(evals[0].train_accuracy, 0.125);
  EXPECT_EQ(evals[0].validation, (ValidationFigures{.accuracy = 0.25, .loss = 3}));
  EXPECT_EQ(evals[1].train_loss, (10 * 2 + 30 * 1) / 40.0) << "by sample";
  EXPECT_EQ(evals[1].train_accuracy, (10 * 0.5 + 30 * 0.75) / 40);
  EXPECT_EQ(evals[2].train_loss, std::nullopt) << "nothing was trained in between";
}

TEST_F(RecorderTest, LeavesWarmUpOutOfTheReport) {
  config_.warmup_steps = 2;
  begin();
  for (int worker : {0, 1}) {
    step(worker, 1s, 1s);
    step(worker, 2s, 1s);
    for (int i = 1; i <= 4; ++i) step(worker, 2s + i * 250ms, 250ms);
  }
  const RunReport report = this->report();
  EXPECT_EQ(report.total_steps, 12);
  ASSERT_TRUE(report.window.has_value());
  EXPECT_EQ(report.window->steps, 8);
  EXPECT_EQ(report.step_ms_median, 250);
  EXPECT_EQ(report.window->samples_per_second, 8 * kSamples);
  EXPECT_DOUBLE_EQ(report.samples_per_second.value_or(0), 12 * kSamples / 3.0) << "of the whole job";
}

TEST_F(RecorderTest, GoesOnMeasuringWithoutALostWorker) {
  Recorder& recorder = begin();
  for (int i = 1; i <= 8; ++i) {
    step(0, i * 250ms, 250ms);
    if (i == 2) step(1, 500ms, 500ms);
  }
  recorder.on_worker_lost(1);
  const RunReport report = this->report();
  ASSERT_TRUE(report.window.has_value());
  EXPECT_EQ(report.window->seconds, 2);
  EXPECT_EQ(report.window->steps, 9);
}

TEST_F(RecorderTest, KeepsTheFinalWeightsAndWritesThem) {
  Recorder& recorder = begin();
  const std::vector<float> weights(16, 0.5f);
  recorder.on_final_weights(weights, {}, {});
  EXPECT_TRUE(recorder.on_tick(kBegin + 1s).ok());
  EXPECT_TRUE(recorder.finish().ok());
  EXPECT_EQ(recorder.final_weights(), weights);
  EXPECT_TRUE(std::filesystem::is_regular_file(model_file()));
}

TEST_F(RecorderTest, WritesNoModelOfWeightsThatCannotBeIts) {
  Recorder& recorder = begin();
  recorder.on_final_weights(std::vector<float>(15), {}, {});
  recorder.on_final_weights(std::vector<float>(16), std::vector<float>(1), {});
  EXPECT_TRUE(recorder.finish().ok());
  EXPECT_FALSE(std::filesystem::exists(model_file()));
}

TEST_F(RecorderTest, WritesWhatAModelKeepsBesideItsWeightsBehindThem) {
  job_.layout.add("bias", {3});
  job_.local_layout.add("running_mean", {2});
  job_.local_layout.add("running_var", {1, 2});
  std::vector<float> weights(job_.layout.size()), state(job_.local_layout.size());
  weights[18] = 5;
  state[1] = 6, state[kAlignment] = 7;
  Recorder& recorder = begin();
  recorder.on_final_weights(weights, state, {});
  EXPECT_TRUE(recorder.finish().ok());
  EXPECT_EQ(recorder.final_weights(), weights);
  const Result<SafetensorsFile> file = read_safetensors(model_file());
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), 4u);
  EXPECT_THAT(file->tensors[1].values, ElementsAre(0, 0, 5));
  EXPECT_EQ(file->tensors[2].name, "running_mean");
  EXPECT_THAT(file->tensors[2].values, ElementsAre(0, 6));
  EXPECT_THAT(file->tensors[3].shape, ElementsAre(1, 2));
  EXPECT_THAT(file->tensors[3].values, ElementsAre(7, 0));
}

TEST_F(RecorderTest, WritesTheRowsOfTablesThatItIsGivenAndWhichTheyAre) {
  job_.layout = ParamLayout();
  job_.layout.add_table("user", 1000, 2, {.rows_a_step = 5, .limit = 0.1f});
  job_.layout.add("bias", {3});
  Recorder& recorder = begin();
  std::vector<float> weights(32);
  weights[2] = 5;  // the last bias; rows begin on the next cache line
  weights[16] = 6, weights[19] = 7;
  recorder.on_final_weights(weights, {}, {});
  EXPECT_TRUE(recorder.final_weights().empty()) << "a snapshot without rows is no snapshot of this model";
  recorder.on_final_weights(weights, {}, {{17, 900}});
  EXPECT_TRUE(recorder.finish().ok());
  const Result<SafetensorsFile> file = read_safetensors(model_file());
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->tensors[0].name, "user.rows");
  EXPECT_THAT(file->tensors[0].whole_numbers, ElementsAre(17, 900));
  EXPECT_THAT(file->tensors[1].values, ElementsAre(0, 0, 5));
  EXPECT_EQ(file->tensors[2].name, "user");
  EXPECT_THAT(file->tensors[2].shape, ElementsAre(2, 2));
  EXPECT_THAT(file->tensors[2].values, ElementsAre(6, 0, 0, 7));
}

TEST_F(RecorderTest, FailsFromThenOnWhereTheModelCannotBeWritten) {
  Recorder& recorder = begin();
  std::filesystem::create_directory(model_file());
  EXPECT_TRUE(recorder.on_tick(kBegin + 1s).ok());
  recorder.on_final_weights(std::vector<float>(16), {}, {});
  for (const Status& status : {recorder.on_tick(kBegin + 2s), recorder.on_tick(kBegin + 4s), recorder.finish()}) {
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr(model_file().string()));
  }
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/lab/predict/way_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using prediction::Exchange;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ScaledJob job_of(int workers_per_host) {
  return {.profile_name = "resnet50",
          .profile = *prediction::built_in_profile("resnet50"),
          .workers = {4},
          .workers_per_host = workers_per_host,
          .batch_size = 64,
          .step_seconds = 0.1234567,
          .link = *LinkShape::parse("25gbit+50us"),
          .prices = {}};
}

TEST(WordsOfAWay, AskForItsRun) {
  const prediction::Way ring{.plan = {.exchange = Exchange::kRing, .bucket_bytes = 5e6}};
  const Result<RunRequest> request = run_of(words_of(job_of(1), 4, ring));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->model, "profile:resnet50");
  EXPECT_EQ(request->bucket_bytes, 5'000'000);
  EXPECT_EQ(request->shape->to_string(), "25gbit+50us");
  EXPECT_EQ(request->compute->step, std::chrono::nanoseconds(123'456'700));
  EXPECT_TRUE(request->hosts.empty());
  const std::string command = command_of(words_of(job_of(1), 4, ring));
  EXPECT_THAT(command, AllOf(StartsWith("./run_experiment --cluster=simulated --model=profile:resnet50 --workers=4 "),
                             Not(HasSubstr("'"))));
}

// The run divides the same step by the same rows, so that it says the same.
TEST(WordsOfAWay, NameTheDeviceWhoseStepItIs) {
  ScaledJob job = job_of(1);
  job.device = "p100";
  const Result<RunRequest> request =
      run_of(words_of(job, 4, {.plan = {.exchange = Exchange::kRing, .bucket_bytes = 5e6}}));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->compute->device, "p100");
}

// A batch of all of them is more than generated data usually has.
TEST(WordsOfAWay, NeedNoTrainingSamplesForManyWorkers) {
  const prediction::Way ring{.plan = {.exchange = Exchange::kRing, .bucket_bytes = 5e6}};
  const Result<RunRequest> request = run_of(words_of(job_of(1), 1024, ring));
  EXPECT_TRUE(request.ok()) << request.status().message();
}

TEST(WordsOfAWay, PutServersOnHostsOfTheirOwnWhereWorkersShareThem) {
  const prediction::Way servers{.plan = {.exchange = Exchange::kServers, .servers = 2}};
  const Result<RunRequest> request = run_of(words_of(job_of(2), 4, servers));
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request->hosts.size(), 4u);
  EXPECT_EQ(request->hosts[1].slots, 0);
  EXPECT_EQ(request->hosts[2].slots, 2);
  EXPECT_EQ(request->inside->to_string(), job_of(2).inside.to_string());
}

TEST(WordsOfAWay, NameTheStagesOfAModelAndAsFewSamplesAsTheyTake) {
  ScaledJob job = job_of(1);
  job.own_model = OwnModelWords{.words = {"--model=mlp:784-32-32-10"}, .has_generated_data = true};
  const prediction::Way way{.plan = {.bucket_bytes = 5e6},
                            .pipeline = {.stages = 2, .microbatches = 16, .schedule = "zero-bubble"}};
  const Result<RunRequest> request = run_of(words_of(job, 4, way));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->model, "mlp:784-32-32-10");
  EXPECT_EQ(request->pipeline, 2);
  EXPECT_EQ(request->microbatches, 16);
  EXPECT_EQ(request->pipeline_schedule, worker::PipelineSchedule::kZeroBubble);
  EXPECT_EQ(request->bucket_bytes, 5'000'000);
  EXPECT_EQ(request->train_samples, 4 * 4 * 64);
}

TEST(WordsOfAWay, HaveWholePeriodsOfWhatIsAdded) {
  const prediction::Way ring{.plan = {.exchange = Exchange::kRing, .bucket_bytes = 5e6}};
  const std::vector<std::string> words =
      words_of(job_of(1), 4, ring, {.name = "averaged", .words = {"--sync-every=8"}, .period = 8});
  EXPECT_THAT(words,
              AllOf(Contains("--sync-every=8"), Contains("--warmup-steps=8"), Each(Not(StartsWith("--bucket")))));
  EXPECT_TRUE(run_of(words).ok()) << run_of(words).status().message();
}

TEST(WordsOfAWay, AreRefusedAsAPersonsWouldBe) {
  const prediction::Way ring{.plan = {.exchange = Exchange::kRing, .bucket_bytes = 5e6}};
  EXPECT_THAT(
      run_of(words_of(job_of(1), 4, ring, {.name = "matrices", .words = {"--compress=powersgd:4"}})).status().message(),
      AllOf(StartsWith("--model=profile:resnet50: "), EndsWith("leave --compress=powersgd:4 out")));
  EXPECT_TRUE(run_of(words_of(job_of(1), 4, ring, {.name = "int8", .words = {"--compress=int8"}})).ok());
}

}  // namespace
}  // namespace syncopate::experiments

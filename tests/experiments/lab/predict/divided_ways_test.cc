#include "experiments/lab/predict/divided_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "experiments/config/resolution.h"
#include "experiments/lab/run/run_prediction.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

AdviseRequest request_of(const std::vector<std::string>& words) {
  using testing_support::operator+;
  const Result<AdviseRequest> request = parse_advise_request(
      std::vector<std::string>{"--compute=100ms", "--shape=10gbit+20us", "--bucket-sizes=1MB,5MB"} + words);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return request.ok() ? *request : AdviseRequest();
}

std::set<int> stages_of(const DividedWays& found, const std::string& schedule) {
  std::set<int> stages;
  for (const prediction::FormedWay& one : found.ways) {
    if (one.way.pipeline.schedule == schedule) stages.insert(one.way.pipeline.stages);
  }
  return stages;
}

std::set<int> microbatches_of_stages(const DividedWays& found, int stages, const std::string& schedule) {
  std::set<int> counts;
  for (const prediction::FormedWay& one : found.ways) {
    const prediction::StagePlan& plan = one.way.pipeline;
    if (plan.schedule == schedule && plan.stages == stages) counts.insert(plan.microbatches);
  }
  return counts;
}

std::set<int> parts_in_ways(const DividedWays& found) {
  std::set<int> parts;
  for (const prediction::FormedWay& one : found.ways) {
    if (one.way.parts > 1) parts.insert(one.way.parts);
  }
  return parts;
}

// Five layers: enough for three stages, and for two with two chunks each.
TEST(DividedWays, AreAsManyAsDivideTheWorkersAndHaveLayers) {
  const DividedWays found =
      divided_ways(request_of({"--model=mlp:784-64-64-64-64-10", "--workers=6", "--batch-size=32"}), 6);
  EXPECT_THAT(stages_of(found, "1f1b"), ElementsAre(2, 3));
  EXPECT_THAT(stages_of(found, "zero-bubble"), ElementsAre(2, 3));
  EXPECT_THAT(stages_of(found, "interleaved"), ElementsAre(2));
  EXPECT_THAT(parts_in_ways(found), ElementsAre(2)) << "64 outputs have no three parts alike";
  ASSERT_EQ(found.refused.size(), 4u);
  EXPECT_EQ(found.refused[0].name, "pipelines of 3 stages, interleaved");
  EXPECT_THAT(found.refused[0].why, HasSubstr("has 5 layers that a chunk can begin with"));
  EXPECT_EQ(found.refused[1].name, "layers in 3 parts");
  EXPECT_THAT(found.refused[1].why, HasSubstr("--tensor=3: "));
  EXPECT_EQ(found.refused[2].name, "pipelines of 6 stages");
  EXPECT_THAT(found.refused[2].why, HasSubstr("cannot be cut into 6 stages; 5 at most"));
  EXPECT_EQ(found.refused[3].name, "layers in 6 parts");
}

TEST(DividedWays, HaveTheUsualMicrobatchesAndMoreThatDivideTheBatch) {
  const AdviseRequest request = request_of({"--model=mlp:784-64-64-64-64-64-64-10", "--workers=3", "--batch-size=8"});
  const DividedWays found = divided_ways(request, 3);
  EXPECT_THAT(microbatches_of_stages(found, 3, "1f1b"), ElementsAre(8)) << "16 do not divide 24";
  EXPECT_THAT(microbatches_of_stages(found, 3, "interleaved"), ElementsAre(6, 12, 24)) << "groups of 3";
  EXPECT_EQ(found.ways.size(), 5u) << "one bucket: nobody has the same stage";
  const DividedWays more = divided_ways(request_of({"--model=mlp", "--workers=4", "--batch-size=32"}), 4);
  EXPECT_THAT(microbatches_of_stages(more, 2, "1f1b"), ElementsAre(8, 16, 32));
}

// Four equal stages and hardly any link: (M + S - 1) / M of a step, whose bubble zero-bubble makes a third.
TEST(DividedWays, HaveTheStepOfTheSchedule) {
  AdviseRequest request = request_of({"--model=mlp:768-768-768-768-768", "--workers=4", "--batch-size=8",
                                      "--dataset=patterns", "--image-size=16", "--classes=768"});
  request.job.link = *LinkShape::parse("1000gbit");
  for (const prediction::FormedWay& one : divided_ways(request, 4).ways) {
    if (one.way.pipeline.stages != 4 || one.way.pipeline.microbatches != 8) continue;
    const double bubble = one.way.pipeline.schedule == "zero-bubble" ? 1 : 3;
    EXPECT_NEAR(one.prediction.step, 0.1 * (8 + bubble) / 8, 0.002) << one.way.pipeline.schedule;
    EXPECT_LE(one.least_step, one.prediction.step);
    EXPECT_GT(one.least_step, 0.95 * one.prediction.step) << "the bubble is no message";
  }
}

// Two replicas of a stage of 4.7 MB send and receive that once, at 12.5 MB/s, which the last microbatch's backward
// hides little of.
TEST(DividedWays, WaitForWhatTheReplicasOfAStageExchange) {
  AdviseRequest request = request_of({"--model=mlp:768-768-768-768-768", "--workers=4", "--batch-size=8",
                                      "--dataset=patterns", "--image-size=16", "--classes=768"});
  request.job.link = *LinkShape::parse("100mbit");
  const prediction::Network network = request.job.network(4);
  const double exchange = request.job.profile.bytes() / 2 / network.bytes_per_second;
  for (const prediction::FormedWay& one : divided_ways(request, 4).ways) {
    if (one.way.pipeline.stages != 2) continue;
    EXPECT_GT(one.prediction.step, 0.1 + 0.9 * exchange) << one.way.pipeline.schedule;
    EXPECT_GE(one.least_step, exchange);
  }
}

// A quarter of the weights, with gradients, a microbatch's gradients and adam's state.
TEST(DividedWays, NeedTheMemoryOfTheLargestStage) {
  const AdviseRequest request = request_of({"--model=mlp:768-768-768-768-768", "--workers=4", "--batch-size=8",
                                            "--dataset=patterns", "--image-size=16", "--classes=768"});
  const DividedWays found = divided_ways(request, 4);
  ASSERT_THAT(found.ways, testing::Not(IsEmpty()));
  for (const prediction::FormedWay& one : found.ways) {
    if (one.way.pipeline.stages > 1) {
      EXPECT_NEAR(one.host_bytes, 5 * request.job.profile.bytes() / one.way.pipeline.stages, 1);
    }
  }
}

// The first of two stages has the first layer alone, of 784 x 64 weights and 64 biases.
TEST(DividedWays, NeedTheMemoryOfTheLargestWhereStagesAreUnequal) {
  const DividedWays found =
      divided_ways(request_of({"--model=mlp:784-64-64-64-10", "--workers=2", "--batch-size=8"}), 2);
  const auto one = std::ranges::find(found.ways, "1f1b", [](const auto& way) { return way.way.pipeline.schedule; });
  ASSERT_NE(one, found.ways.end());
  EXPECT_DOUBLE_EQ(one->host_bytes, 5 * 4 * (784 * 64 + 64));
}

// A gpt's output reads the tokens, which the first stage updates.
TEST(DividedWays, KnowWhatAStageReadsOfAnother) {
  const AdviseRequest request = request_of({"--model=gpt:2-2-16", "--context=16", "--workers=2", "--batch-size=8"});
  const prediction::Way way{.plan = {.bucket_bytes = 1e6},
                            .pipeline = {.stages = 2, .microbatches = 8, .schedule = "1f1b"}};
  const std::optional<PipelinePrediction> found =
      predicted_pipeline(presumed(*run_of(words_of(request.job, 2, way))), 0.1);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->borrowed_bytes, ElementsAre(0, 4 * request.job.profile.tensors.front().parameters));
  EXPECT_DOUBLE_EQ(found->own_bytes[0] + found->own_bytes[1], request.job.profile.bytes());
}

// Two pairs of layers: a sum forward of each, and one backward of the second alone, of 4 x 8 samples of 768 values. A
// ring of four sends each 6/4 times, in 6 messages.
TEST(DividedWays, HaveTheSumsOfPartsOneAfterAnother) {
  const AdviseRequest request = request_of({"--model=mlp:768-768-768-768-768", "--workers=4", "--batch-size=8",
                                            "--dataset=patterns", "--image-size=16", "--classes=768"});
  const DividedWays found = divided_ways(request, 4);
  const auto one = std::ranges::find(found.ways, 4, [](const prediction::FormedWay& way) { return way.way.parts; });
  ASSERT_NE(one, found.ways.end());
  const prediction::Network network = request.job.network(4);
  const double sum = 6 * network.alpha + 1.5 * 4 * 4 * 8 * 768 / network.bytes_per_second;
  EXPECT_NEAR(one->prediction.step, 0.1 + 3 * sum, 0.001) << "what is whole on all, biases, is computed four times";
  EXPECT_GE(one->prediction.step, 0.1 + 3 * sum);
  EXPECT_LE(one->least_step, one->prediction.step);
  EXPECT_GE(one->least_step, 0.1 + 3 * (sum - 6 * network.alpha));
  EXPECT_NEAR(one->host_bytes, request.job.profile.bytes(), 1e5) << "a quarter of four floats a parameter";
}

TEST(DividedWays, AreNoneOfAProfileAndRefusedWhereHostsHaveSeveralWorkers) {
  const DividedWays profile = divided_ways(request_of({"--model=vgg16", "--workers=4", "--batch-size=8"}), 4);
  EXPECT_THAT(profile.ways, IsEmpty());
  EXPECT_THAT(profile.refused, IsEmpty());
  const DividedWays shared = divided_ways(
      request_of({"--model=mlp:784-64-64-64-10", "--workers=4", "--batch-size=8", "--workers-per-host=2"}), 4);
  EXPECT_THAT(shared.ways, IsEmpty());
  EXPECT_THAT(shared.refused, Contains(AllOf(Field(&RefusedWay::name, "pipelines of 2 stages"),
                                             Field(&RefusedWay::why, HasSubstr("several workers")))));
}

}  // namespace
}  // namespace syncopate::experiments

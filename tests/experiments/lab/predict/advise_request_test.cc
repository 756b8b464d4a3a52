#include "experiments/lab/predict/advise_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> advise_words(const std::vector<std::string>& more) {
  using testing_support::operator+;
  return std::vector<std::string>{"--profile=resnet50", "--workers=6", "--batch-size=64", "--step-time=0.292",
                                  "--shape=25gbit+50us"} +
         more;
}

std::string refused_advice(const std::vector<std::string>& more) {
  return parse_advise_request(advise_words(more)).status().message();
}

TEST(AdviseRequest, SearchesThroughAllUnlessSomethingIsAskedFor) {
  const Result<AdviseRequest> request = parse_advise_request(advise_words({}));
  ASSERT_TRUE(request.ok()) << request.status().message();
  const prediction::SearchSpace space = request->space(6);
  EXPECT_THAT(space.servers, ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(space.shardings, ElementsAre(prediction::Sharding::kEven, prediction::Sharding::kWhole));
  EXPECT_THAT(space.bucket_bytes, ElementsAre(1e6, 5e6, 25e6, 100e6));
  EXPECT_EQ(request->goal, prediction::Goal::kFastest);
  EXPECT_EQ(request->state_floats, 2);
  EXPECT_FALSE(request->memory_bytes.has_value());
}

TEST(AdviseRequest, ReadsItsOptions) {
  const Result<AdviseRequest> request = parse_advise_request(advise_words(
      {"--servers=3,5", "--sharding=whole", "--bucket-sizes=0,4MiB", "--price-worker=3", "--price-server=1",
       "--memory=16GiB", "--goal=cheapest", "--optimizer=sgd", "--search-events=5000", "--inside=100gbit+5us"}));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_THAT(request->space(6).servers, ElementsAre(3, 5));
  EXPECT_THAT(request->space(6).shardings, ElementsAre(prediction::Sharding::kWhole));
  EXPECT_THAT(request->space(6).bucket_bytes, ElementsAre(0, 4 << 20));
  const prediction::AdvisedJob job = request->advised_job();
  EXPECT_EQ(job.memory_bytes, 16.0 * (1 << 30));
  EXPECT_EQ(job.goal, prediction::Goal::kCheapest);
  EXPECT_EQ(job.state_floats, 0);
  EXPECT_EQ(job.prices.server, 1);
  EXPECT_EQ(request->search_events, 5000);
  EXPECT_EQ(request->job.inside.to_string(), "100gbit+5us");
}

Result<AdviseRequest> own_advice(const std::vector<std::string>& model) {
  using testing_support::operator+;
  return parse_advise_request(
      model + std::vector<std::string>{"--workers=4", "--batch-size=8", "--compute=100ms", "--shape=10gbit"});
}

TEST(AdviseRequest, TakesAModelThatCanBeTrainedHereWithItsSamples) {
  const Result<AdviseRequest> request = own_advice({"--model=gpt:2-2-16", "--context=32"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_TRUE(request->job.own_model.has_value());
  EXPECT_TRUE(request->job.own_model->has_generated_data);
  EXPECT_THAT(request->job.own_model->words,
              ElementsAre("--context=32", "--dataset=grammar", "--model=gpt:2-2-16", "--optimizer=adam"));
  EXPECT_EQ(request->job.profile.model, "gpt:2-2-16");
  EXPECT_DOUBLE_EQ(request->job.step_seconds, 0.1);
}

// 784 x 32 and 32 x 10 weights, two FLOPs each; biases have none, and get a part by their size.
TEST(AdviseRequest, CountsTheFlopsOfItsLayers) {
  const Result<AdviseRequest> request = own_advice({"--model=mlp:784-32-10"});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->job.profile.parameters(), 784 * 32 + 32 + 32 * 10 + 10);
  EXPECT_NEAR(request->job.profile.forward_flops(), 2 * (784 * 32 + 32 * 10), 1);
}

TEST(AdviseRequest, TakesANameOfBothForAProfileUnlessItHasData) {
  EXPECT_FALSE(own_advice({"--model=resnet50"})->job.own_model.has_value());
  EXPECT_FALSE(own_advice({"--model=profile:resnet50"})->job.own_model.has_value());
  EXPECT_TRUE(own_advice({"--model=resnet50", "--dataset=patterns", "--image-size=32"})->job.own_model.has_value());
}

TEST(AdviseRequest, RefusesModelsWithTablesAndDataOfAProfile) {
  EXPECT_THAT(own_advice({"--model=ncf", "--dataset=ratings"}).status().message(),
              StartsWith("--model=ncf: has row-sparse tables, of which no form knows"));
  EXPECT_THAT(own_advice({"--model=resnet50", "--context=32"}).status().message(),
              StartsWith("--context=32: is of a model that can be trained here, as --model=gpt:4-8-256;"));
  EXPECT_THAT(own_advice({"--model=gpt:2-3-16"}).status().message(),
              AllOf(StartsWith("--model=gpt:2-3-16: "), Not(HasSubstr("tables"))));
}

TEST(AdviseRequest, SaysWhatIsWrong) {
  EXPECT_EQ(parse_advise_request({}).status().message(), "advise: --workers is missing");
  EXPECT_THAT(refused_advice({"--bucket-size=1"}), AllOf(StartsWith("advise: "), HasSubstr("mean --bucket-sizes?")));
  EXPECT_THAT(refused_advice({"--search-events=0"}), StartsWith("--search-events=0: must be 1 to 1000000000000"));
  EXPECT_EQ(refused_advice({"--goal=best"}), "--goal=best: must be fastest or cheapest");
  const std::string unpriced = "--goal=cheapest: needs --price-worker above 0, and --price-server";
  EXPECT_EQ(refused_advice({"--goal=cheapest"}), unpriced);
  EXPECT_EQ(refused_advice({"--goal=cheapest", "--price-worker=0", "--price-server=1"}), unpriced);
  EXPECT_EQ(refused_advice({"--servers=1,0"}), "--servers=0: must be 1 to 65536, or a list of such");
  EXPECT_EQ(refused_advice({"--servers=1,,2"}), "--servers=1,,2: must be 1 to 64 values with commas between them");
  EXPECT_EQ(refused_advice({"--sharding=even,odd"}), "--sharding=odd: must be even or whole");
  EXPECT_EQ(refused_advice({"--optimizer=lion"}),
            "--optimizer=lion: must be sgd, momentum, nesterov, adam, adamw, adagrad, ftrl, rmsprop, adadelta, adamax, "
            "radam, lars or lamb");
  for (const char* size : {"16G", "0", "-1GB", "nan", "GiB", "1e300GB"}) {
    EXPECT_EQ(refused_advice({fmt::format("--memory={}", size)}),
              fmt::format("--memory={}: must be 1MB to 1000000GB, as 16GiB or 64GB", size));
    if (size != std::string("0")) {
      EXPECT_THAT(refused_advice({fmt::format("--bucket-sizes=1MB,{}", size)}),
                  AllOf(StartsWith(fmt::format("--bucket-sizes={}: must be 0 to", size)), HasSubstr("or a list")));
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments

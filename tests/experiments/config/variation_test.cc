#include "experiments/config/variation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

RunRequest base() {
  RunRequest config;
  config.workers = 2;
  return config;
}

std::vector<std::string> labels_of(const VariedRuns& varied) {
  std::vector<std::string> labels;
  for (const ComparedRun& run : varied.runs) labels.push_back(run.label);
  return labels;
}

using Values = std::vector<std::pair<std::string, std::string>>;

Result<VariedRuns> varied(const std::string& modes, const std::vector<std::string>& texts) {
  std::vector<Variation> variations;
  for (const std::string& text : texts) {
    const Result<Variation> variation = parse_variation(text);
    if (!variation.ok()) return variation.status();
    variations.push_back(*variation);
  }
  return varied_runs(base(), modes, variations);
}

TEST(Variation, RunsEachModeWithEachValue) {
  const auto runs = varied("allreduce,ps:sync", {"batch-size=32,64"});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_THAT(labels_of(*runs), ElementsAre("allreduce batch-size=32", "allreduce batch-size=64",
                                            "ps:sync batch-size=32", "ps:sync batch-size=64"));
  EXPECT_EQ(runs->runs[3].config.batch_size, 64);
  EXPECT_EQ(runs->runs[3].config.mode, Mode::kPs);
  EXPECT_EQ(runs->runs[3].mode, "ps:sync");
  EXPECT_EQ(runs->runs[3].values, (Values{{"batch-size", "64"}}));
  EXPECT_THAT(runs->left_out, IsEmpty());
}

TEST(Variation, RunsEachCombinationOfValues) {
  const auto runs = varied("ps:async", {"batch-size=32,64", "compress=none,int8"});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_THAT(labels_of(*runs),
              ElementsAre("ps:async batch-size=32 compress=none", "ps:async batch-size=32 compress=int8",
                          "ps:async batch-size=64 compress=none", "ps:async batch-size=64 compress=int8"));
  EXPECT_EQ(runs->runs[2].values, (Values{{"batch-size", "64"}, {"compress", "none"}}));
  EXPECT_TRUE(compresses(runs->runs[3].config));
}

TEST(Variation, RunsAModeInWhichItHasNoEffectOnce) {
  const auto runs = varied("local,ps:async", {"servers=1,2"});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_THAT(labels_of(*runs), ElementsAre("local", "ps:async servers=1", "ps:async servers=2"));
  EXPECT_EQ(runs->runs[0].values, Values());
}

// How answers are compressed matters only where anything is.
TEST(Variation, RunsCombinationsThatDifferInNothingThatHasAnEffectOnce) {
  const auto runs = varied("ps:async", {"compress=none,int8", "compress-answers=on,off"});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_THAT(labels_of(*runs), ElementsAre("ps:async compress=none", "ps:async compress=int8 compress-answers=on",
                                            "ps:async compress=int8 compress-answers=off"));
}

TEST(Variation, TakesWhatIsNotGivenAsAValue) {
  const auto runs = varied("ps:async", {"straggler=none,1:4x"});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_TRUE(runs->runs[0].config.stragglers.empty());
  EXPECT_EQ(runs->runs[1].config.stragglers.to_string(), "1:4x");
  EXPECT_FALSE(varied("ps:async", {"shape=none,1gbit"})->runs[0].config.shape.has_value());
  EXPECT_TRUE(varied("ps:async", {"fault=none,stop:worker1@1s+1s"})->runs[0].config.faults.empty());
  const auto chunks = varied("ps:async", {"chunk-bytes=default,65536"});
  ASSERT_TRUE(chunks.ok()) << chunks.status().message();
  EXPECT_EQ(chunks->runs[0].config.chunk_bytes, std::nullopt);
  EXPECT_EQ(chunks->runs[1].config.chunk_bytes, 65536);
}

TEST(Variation, TurnsASwitchOnAndOff) {
  const auto runs = varied("ps:sync", {"overlap-forward=false,true"});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_THAT(labels_of(*runs), ElementsAre("ps:sync overlap-forward=false", "ps:sync overlap-forward=true"));
  EXPECT_FALSE(runs->runs[0].config.overlap_forward);
  EXPECT_TRUE(runs->runs[1].config.overlap_forward);
  EXPECT_THAT(varied("ps:sync", {"overlap-forward=on"}).status().message(), HasSubstr("must be true or false"));
}

TEST(Variation, TakesValuesWithCommasBetweenSemicolons) {
  const auto variation = parse_variation("lr-schedule=constant;cosine,warmup:1");
  ASSERT_TRUE(variation.ok()) << variation.status().message();
  EXPECT_THAT(variation->values, ElementsAre("constant", "cosine,warmup:1"));
}

TEST(Variation, LeavesOutWhatCannotRunAndSaysWhy) {
  const auto runs = varied("local,allreduce", {"lr-schedule=constant,linear"});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  EXPECT_THAT(labels_of(*runs), ElementsAre("local lr-schedule=constant", "allreduce lr-schedule=constant",
                                            "allreduce lr-schedule=linear"));
  EXPECT_THAT(runs->left_out, ElementsAre(HasSubstr("local lr-schedule=linear: left out: --lr-schedule=linear: ")));
  EXPECT_THAT(varied("local", {"lr-schedule=linear"}).status().message(),
              HasSubstr("local lr-schedule=linear: left out: "));
}

TEST(Variation, RefusesWhatItCannotVary) {
  EXPECT_THAT(parse_variation("servers").status().message(), HasSubstr("must be an option and its values"));
  EXPECT_THAT(parse_variation("mode=ps").status().message(),
              HasSubstr("mode cannot be varied: modes stand in --modes"));
  EXPECT_THAT(parse_variation("pipeline=1,2").status().message(),
              HasSubstr("in --modes, as allreduce:pipeline:s does"));
  EXPECT_THAT(parse_variation("repeat=1,2").status().message(), HasSubstr("of the comparison as a whole"));
  EXPECT_THAT(parse_variation("severs=1").status().message(), HasSubstr("did you mean servers?"));
  EXPECT_THAT(parse_variation("servers=").status().message(), HasSubstr("names no value"));
  EXPECT_THAT(parse_variation("servers=1,2,1").status().message(), HasSubstr("names 1 twice"));
  EXPECT_THAT(varied("ps:sync", {"servers=0,1"}).status().message(),
              AllOf(HasSubstr("--servers=0"), HasSubstr("1 to 1024")));
  EXPECT_THAT(varied("ps:sync,ps:snyc", {"servers=1,2"}).status().message(),
              StartsWith("--modes: 'ps:snyc' must be all, local, "));
  EXPECT_THAT(varied("ps:sync,ps:sync", {"servers=1,2"}).status().message(), HasSubstr("names ps:sync twice"));
}

}  // namespace
}  // namespace syncopate::experiments

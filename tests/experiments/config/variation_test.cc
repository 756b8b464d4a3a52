#include "experiments/config/variation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunConfig base() {
  RunConfig config;
  config.workers = 2;
  return config;
}

std::vector<std::string> labels_of(const VariedRuns& varied) {
  std::vector<std::string> labels;
  for (const ComparedRun& run : varied.runs) labels.push_back(run.label);
  return labels;
}

TEST(Variation, RunsEachModeWithEachValue) {
  const auto varied = varied_runs(base(), "allreduce,ps:sync", *parse_variation("batch-size=32,64"));
  ASSERT_TRUE(varied.ok()) << varied.status().message();
  EXPECT_THAT(labels_of(*varied), ElementsAre("allreduce batch-size=32", "allreduce batch-size=64",
                                              "ps:sync batch-size=32", "ps:sync batch-size=64"));
  EXPECT_EQ(varied->runs[3].config.batch_size, 64);
  EXPECT_EQ(varied->runs[3].config.mode, Mode::kPs);
  EXPECT_EQ(varied->runs[3].mode, "ps:sync");
  EXPECT_EQ(varied->runs[3].value, "64");
  EXPECT_THAT(varied->left_out, IsEmpty());
}

TEST(Variation, RunsAModeInWhichItHasNoEffectOnce) {
  const auto varied = varied_runs(base(), "local,ps:async", *parse_variation("servers=1,2"));
  ASSERT_TRUE(varied.ok()) << varied.status().message();
  EXPECT_THAT(labels_of(*varied), ElementsAre("local", "ps:async servers=1", "ps:async servers=2"));
  EXPECT_EQ(varied->runs[0].value, "");
}

TEST(Variation, LeavesOutWhatCannotRunAndSaysWhy) {
  const auto varied = varied_runs(base(), "local,allreduce", *parse_variation("lr-schedule=constant,linear"));
  ASSERT_TRUE(varied.ok()) << varied.status().message();
  EXPECT_THAT(labels_of(*varied), ElementsAre("local lr-schedule=constant", "allreduce lr-schedule=constant",
                                              "allreduce lr-schedule=linear"));
  EXPECT_THAT(varied->left_out, ElementsAre(HasSubstr("local lr-schedule=linear: left out: --lr-schedule=linear: ")));
  const auto none = varied_runs(base(), "local", *parse_variation("lr-schedule=linear"));
  EXPECT_THAT(none.status().message(), HasSubstr("local lr-schedule=linear: left out: "));
}

TEST(Variation, RefusesWhatItCannotVary) {
  EXPECT_THAT(parse_variation("servers").status().message(), HasSubstr("must be an option and its values"));
  EXPECT_THAT(parse_variation("mode=ps").status().message(), HasSubstr("mode cannot be varied"));
  EXPECT_THAT(parse_variation("severs=1").status().message(), HasSubstr("did you mean servers?"));
  EXPECT_THAT(parse_variation("servers=").status().message(), HasSubstr("names no value"));
  EXPECT_THAT(parse_variation("servers=1,2,1").status().message(), HasSubstr("names 1 twice"));
  EXPECT_THAT(varied_runs(base(), "ps:sync", *parse_variation("servers=0,1")).status().message(),
              AllOf(HasSubstr("--servers=0"), HasSubstr("1 to 64")));
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/config/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string>;

const std::map<std::string, ValueForm> kForms{
    {"output", {.placeholder = "DIR"}}, {"learning-rate", {.placeholder = "RATE"}}, {"trace", {"STEPS", "auto"}}};

Words joined(const Words& words) {
  const Result<Words> result = with_values_joined(words, kForms);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : Words();
}

std::string refusal_of(const Words& words) { return with_values_joined(words, kForms).status().message(); }

TEST(OptionWords, TakeTheWordBehindThemAsTheirValue) {
  EXPECT_THAT(joined({"compare", "--output", "there", "--dry-run", "here"}),
              ElementsAre("compare", "--output=there", "--dry-run", "here"));
  EXPECT_THAT(joined({"--output=there=", "x"}), ElementsAre("--output=there=", "x"));
}

TEST(OptionWords, TakeNumbersBelowZero) {
  EXPECT_THAT(joined({"--learning-rate", "-0.1", "--learning-rate", "-.5"}),
              ElementsAre("--learning-rate=-0.1", "--learning-rate=-.5"));
}

TEST(OptionWords, TakeNoOptionForAValue) {
  EXPECT_EQ(refusal_of({"--output", "--dry-run"}),
            "--output: needs a value, as in --output=DIR (--dry-run is an option of its own)");
  EXPECT_EQ(refusal_of({"--output=", "--dry-run"}), refusal_of({"--output", "--dry-run"}));
  EXPECT_EQ(refusal_of({"--output", "-h"}), "--output: needs a value, as in --output=DIR (-h is an option of its own)");
  EXPECT_EQ(refusal_of({"--output", "-"}), "--output: needs a value, as in --output=DIR (- is an option of its own)");
  EXPECT_EQ(refusal_of({"--output="}), "--output: needs a value, as in --output=DIR");
  EXPECT_EQ(refusal_of({"--output=", "there"}), "--output: needs a value, as in --output=DIR");
  EXPECT_EQ(refusal_of({"--output"}), "--output: needs a value, as in --output=DIR");
  EXPECT_THAT(joined({"--output=-there"}), ElementsAre("--output=-there")) << "nobody types that by mistake";
}

TEST(OptionWords, MeanSomethingWithoutAValueIfTheyCan) {
  EXPECT_THAT(joined({"--trace", "--output=there"}), ElementsAre("--trace=auto", "--output=there"));
  EXPECT_THAT(joined({"--trace=", "3:5"}), ElementsAre("--trace=auto", "3:5"));
  EXPECT_THAT(joined({"--trace", "3:5"}), ElementsAre("--trace=3:5"));
  EXPECT_THAT(joined({"--trace"}), ElementsAre("--trace=auto"));
}

}  // namespace
}  // namespace syncopate::experiments

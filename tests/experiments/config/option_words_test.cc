#include "experiments/config/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using OptionLine = std::vector<std::string>;

const std::map<std::string, ValueForm> kValueForms{
    {"output", {.placeholder = "DIR"}}, {"learning-rate", {.placeholder = "RATE"}}, {"trace", {"STEPS", "auto"}}};

OptionLine words_joined(const OptionLine& words) {
  const Result<OptionLine> result = with_values_joined(words, kValueForms);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : OptionLine();
}

std::string refusal_of_words(const OptionLine& words) {
  return with_values_joined(words, kValueForms).status().message();
}

TEST(OptionWords, TakeTheWordBehindThemAsTheirValue) {
  EXPECT_THAT(words_joined({"compare", "--output", "there", "--dry-run", "here"}),
              ElementsAre("compare", "--output=there", "--dry-run", "here"));
  EXPECT_THAT(words_joined({"--output=there=", "x"}), ElementsAre("--output=there=", "x"));
}

TEST(OptionWords, TakeNumbersBelowZero) {
  EXPECT_THAT(words_joined({"--learning-rate", "-0.1", "--learning-rate", "-.5"}),
              ElementsAre("--learning-rate=-0.1", "--learning-rate=-.5"));
}

TEST(OptionWords, TakeNoOptionForAValue) {
  EXPECT_EQ(refusal_of_words({"--output", "--dry-run"}),
            "--output: needs a value, as in --output=DIR (--dry-run is an option of its own)");
  EXPECT_EQ(refusal_of_words({"--output=", "--dry-run"}), refusal_of_words({"--output", "--dry-run"}));
  EXPECT_EQ(refusal_of_words({"--output", "-h"}),
            "--output: needs a value, as in --output=DIR (-h is an option of its own)");
  EXPECT_EQ(refusal_of_words({"--output", "-"}),
            "--output: needs a value, as in --output=DIR (- is an option of its own)");
  EXPECT_EQ(refusal_of_words({"--output="}), "--output: needs a value, as in --output=DIR");
  EXPECT_EQ(refusal_of_words({"--output=", "there"}), "--output: needs a value, as in --output=DIR");
  EXPECT_EQ(refusal_of_words({"--output"}), "--output: needs a value, as in --output=DIR");
  EXPECT_THAT(words_joined({"--output=-there"}), ElementsAre("--output=-there")) << "nobody types that by mistake";
}

TEST(OptionWords, MeanSomethingWithoutAValueIfTheyCan) {
  EXPECT_THAT(words_joined({"--trace", "--output=there"}), ElementsAre("--trace=auto", "--output=there"));
  EXPECT_THAT(words_joined({"--trace=", "3:5"}), ElementsAre("--trace=auto", "3:5"));
  EXPECT_THAT(words_joined({"--trace", "3:5"}), ElementsAre("--trace=3:5"));
  EXPECT_THAT(words_joined({"--trace"}), ElementsAre("--trace=auto"));
}

}  // namespace
}  // namespace syncopate::experiments

#include "worker/data/sample_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace syncopate::worker {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSamples = 200000;

std::vector<double> costs(const std::string& text, std::uint64_t seed = 1) {
  const SampleCosts drawn = *SampleCosts::parse(text);
  std::vector<double> costs;
  for (std::int64_t sample = 0; sample < kSamples; ++sample) costs.push_back(drawn.of(seed, sample));
  return costs;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Returns the part of all that are at most `limit`.
double part_up_to(double limit, const std::vector<double>& values) {
  return static_cast<double>(std::ranges::count_if(values, [&](double value) { return value <= limit; })) /
         static_cast<double>(values.size());
}

// The error of a mean of so many draws is below 1 % in each.
TEST(SampleCosts, AreOneInTheMean) {
  for (const char* text : {"zipf", "zipf:0.5", "zipf:2", "zipf:1.7", "lognormal:0.25", "lognormal:1"}) {
    const std::vector<double> drawn = costs(text);
    EXPECT_NEAR(mean(drawn), 1, 0.01) << text;
    EXPECT_GT(std::ranges::min(drawn), 0) << text;
  }
}

// Under Zipf's law with exponent 1 every doubling of the length is as frequent, a tenth of all from 1 to 1024.
TEST(SampleCosts, OfZipfHaveLengthsOfItsLaw) {
  const std::vector<double> drawn = costs("zipf");
  const double shortest = std::ranges::min(drawn);
  EXPECT_NEAR(std::ranges::max(drawn) / shortest, 1024, 2);
  for (int doubling = 1; doubling < 10; ++doubling) {
    EXPECT_NEAR(part_up_to(shortest * (1 << doubling), drawn), doubling / 10.0, 0.005) << doubling;
  }
  // With exponent 2 the part of lengths up to l is (1 - 1/l) / (1 - 1/1024).
  const std::vector<double> steep = costs("zipf:2");
  EXPECT_NEAR(part_up_to(4 * std::ranges::min(steep), steep), 0.75 * 1024 / 1023, 0.005);
}

TEST(SampleCosts, OfALognormalHaveItsMedianAndDeviation) {
  const std::vector<double> drawn = costs("lognormal:1");
  EXPECT_NEAR(part_up_to(0.6065, drawn), 0.5, 0.005);     // e^-0.5
  EXPECT_NEAR(part_up_to(1.6487, drawn), 0.8413, 0.005);  // one deviation above
}

TEST(SampleCosts, FollowFromTheSeedAndTheSampleAlone) {
  EXPECT_EQ(costs("zipf"), costs("zipf"));
  EXPECT_NE(costs("zipf", 1).front(), costs("zipf", 2).front());
  EXPECT_NE(costs("zipf")[0], costs("zipf")[1]);
  EXPECT_EQ(SampleCosts().of(1, 7), 1);
}

TEST(SampleCosts, AreWrittenAsTheyAreRead) {
  for (const char* text : {"zipf:1.5", "lognormal:0.7"}) EXPECT_EQ(SampleCosts::parse(text)->to_string(), text);
  EXPECT_EQ(SampleCosts::parse("zipf")->to_string(), "zipf:1");
  EXPECT_TRUE(SampleCosts::parse("")->are_equal());
  EXPECT_FALSE(SampleCosts::parse("zipf")->are_equal());
}

TEST(SampleCosts, SayWhatIsRight) {
  for (const char* text : {"zip", "zipf:", "zipf:0", "zipf:4.1", "lognormal", "lognormal:", "lognormal:2.5",
                           "lognormal:nan", "lognormal:1:2", "normal:1"}) {
    const Status status = SampleCosts::parse(text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("zipf:EXPONENT (above 0 to 4) or lognormal:SIGMA (above 0 to 2)"));
  }
}

}  // namespace
}  // namespace syncopate::worker

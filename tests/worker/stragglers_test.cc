#include "worker/stragglers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace syncopate::worker {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr Duration kLong = std::chrono::hours(1);

Stragglers parsed(const std::string& text) {
  const Result<Stragglers> stragglers = Stragglers::parse(text);
  EXPECT_TRUE(stragglers.ok()) << stragglers.status().message();
  return stragglers.ok() ? *stragglers : Stragglers();
}

Duration delay(const std::string& text, int worker, Duration compute, std::int64_t step = 0) {
  return parsed(text).at(1, worker, step).delay(compute, kLong);
}

TEST(Stragglers, AreWrittenBackAsTheyWereRead) {
  for (const char* text : {"", "3:4x", "0:+20", "all:exp:5", "1:p0.1:+50", "all:p0.5:2.5x", "2:p0.25:exp:0.125",
                           "3:4x,all:exp:5,0:+1e-05", "7:1000x"}) {
    EXPECT_EQ(parsed(text).to_string(), text);
  }
  EXPECT_EQ(parsed("0:p1:+20").to_string(), "0:+20");
  EXPECT_EQ(parsed("0:+1001ms,all:p0.5:exp:0.02s").to_string(), "0:+1001,all:p0.5:exp:20") << "times with their units";
}

TEST(Stragglers, SayWhatWouldBeRightForABadEntry) {
  for (const char* text :
       {"3",      "3:",      ":4x",   "3:4",   "3:x",        "3:1x",    "3:0.5x",     "3:1001x", "-1:4x",     "3.5:4x",
        "one:4x", "3:+0",    "3:+-5", "3:+",   "3:exp:",     "3:exp:0", "3:exp:nan",  "3:p0:+5", "3:p1.5:+5", "3:p:+5",
        "3:p0.5", "3:p0.5:", "3:4x,", ",3:4x", "3:4x,,0:+1", "3: 4x",   "3:+3600001", "All:4x"}) {
    const Status status = Stragglers::parse(text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("must be a rank or all, then :FACTORx")) << text;
  }
  EXPECT_THAT(Stragglers::parse("0:+5,3:fast").status().message(), testing::StartsWith("'3:fast' must be"));
}

TEST(Stragglers, ThatAreAFactorSlowerComputeThatManyTimesAsLong) {
  EXPECT_EQ(delay("3:4x", 3, milliseconds(10)), milliseconds(30));
  EXPECT_EQ(delay("3:1.5x", 3, milliseconds(10)), milliseconds(5));
  EXPECT_EQ(delay("3:4x", 3, Duration{}), Duration{});
}

TEST(Stragglers, WithAFixedDelayTakeItWhateverTheyCompute) {
  EXPECT_EQ(delay("0:+20", 0, Duration{}), milliseconds(20));
  EXPECT_EQ(delay("0:+20", 0, milliseconds(10)), milliseconds(20));
}

TEST(Stragglers, AddUpAndLeaveOthersAlone) {
  const std::string text = "1:4x,1:+20,all:+3";
  EXPECT_EQ(delay(text, 1, milliseconds(10)), milliseconds(53));
  EXPECT_EQ(delay(text, 0, milliseconds(10)), milliseconds(3));
  EXPECT_TRUE(parsed("1:4x").slows(1));
  EXPECT_FALSE(parsed("1:4x").slows(0));
  EXPECT_TRUE(parsed("all:4x").slows(5));
}

TEST(Stragglers, AreCutToTheLongest) {
  EXPECT_EQ(parsed("0:1000x").at(1, 0, 0).delay(milliseconds(100), milliseconds(500)), milliseconds(500));
}

TEST(Stragglers, DrawTheSameFromTheSameSeedAndAnewForEachStepWorkerAndEntry) {
  const Stragglers stragglers = parsed("all:exp:5");
  const Duration drawn = stragglers.at(1, 0, 0).extra;
  EXPECT_EQ(parsed("all:exp:5").at(1, 0, 0).extra, drawn);
  EXPECT_NE(stragglers.at(2, 0, 0).extra, drawn);
  EXPECT_NE(stragglers.at(1, 1, 0).extra, drawn);
  EXPECT_NE(stragglers.at(1, 0, 1).extra, drawn);
  EXPECT_NE(parsed("all:exp:5,all:exp:5").at(1, 0, 0).extra, 2 * drawn);
}

// Figures of 20000 draws of a fixed seed: nothing here is left to chance.
std::vector<double> drawn_ms(const std::string& text) {
  const Stragglers stragglers = parsed(text);
  std::vector<double> values;
  for (std::int64_t step = 0; step < 20000; ++step) values.push_back(seconds(stragglers.at(7, 2, step).extra) * 1e3);
  return values;
}

TEST(Stragglers, KnowWhetherTheyDraw) {
  for (const char* text : {"", "3:4x", "0:+20", "all:+5,1:2x"}) EXPECT_FALSE(Stragglers::parse(text)->draws()) << text;
  for (const char* text : {"all:exp:5", "1:p0.1:+50", "3:4x,2:p0.5:2x"}) {
    EXPECT_TRUE(Stragglers::parse(text)->draws()) << text;
  }
}

TEST(Stragglers, DrawExponentiallyWithTheirMean) {
  const std::vector<double> values = drawn_ms("2:exp:5");
  double sum = 0;
  for (const double value : values) sum += value;
  EXPECT_NEAR(sum / 20000, 5, 0.1);
  const auto above = [&](double limit) {
    return static_cast<double>(std::ranges::count_if(values, [&](double value) { return value > limit; })) / 20000;
  };
  EXPECT_NEAR(above(5), std::exp(-1.0), 0.01);
  EXPECT_NEAR(above(15), std::exp(-3.0), 0.005);
}

TEST(Stragglers, AreSlowInAsManyStepsAsTheirProbabilitySays) {
  const std::vector<double> values = drawn_ms("2:p0.1:+50");
  const auto slow = std::ranges::count(values, 50.0);
  EXPECT_NEAR(static_cast<double>(slow) / 20000, 0.1, 0.007);
  EXPECT_EQ(slow + std::ranges::count(values, 0.0), 20000);
}

TEST(Stragglers, AreCheckedAgainstTheWorkersThatThereAre) {
  EXPECT_TRUE(parsed("3:4x,all:+5").check(4, kLong).ok());
  EXPECT_EQ(parsed("0:+5,4:p0.5:4x").check(4, kLong).message(), "4:p0.5:4x names worker 4; there are workers 0 to 3");
}

TEST(Stragglers, WhoseDelaysWouldPassTheTimeoutAreRefused) {
  EXPECT_TRUE(parsed("0:+300,1:+500,all:exp:50").check(2, milliseconds(500)).ok());
  EXPECT_THAT(parsed("0:+300,all:+201").check(2, milliseconds(500)).message(),
              HasSubstr("delays worker 0 by 501 ms a step; 500 ms, half of --timeout, is the most"));
  EXPECT_THAT(parsed("1:exp:51").check(2, milliseconds(500)).message(), HasSubstr("the mean must be 50 ms or less"));
}

}  // namespace
}  // namespace syncopate::worker

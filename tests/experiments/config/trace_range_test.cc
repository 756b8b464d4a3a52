#include "experiments/config/trace_range.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(TraceRange, IsACountOrARange) {
  EXPECT_EQ(*TraceRange::parse("auto"), TraceRange());
  EXPECT_EQ(*TraceRange::parse("7"), (TraceRange{.count = 7, .first = {}}));
  EXPECT_EQ(*TraceRange::parse("100:119"), (TraceRange{.count = 20, .first = 100}));
  EXPECT_EQ(*TraceRange::parse("0:0"), (TraceRange{.count = 1, .first = 0}));
}

TEST(TraceRange, IsWrittenBackAsItWasRead) {
  for (const char* text : {"auto", "1", "50", "0:0", "100:119"}) {
    ASSERT_TRUE(TraceRange::parse(text).ok()) << text;
    EXPECT_EQ(TraceRange::parse(text)->to_string(), text);
  }
}

TEST(TraceRange, SaysWhatItMustBe) {
  for (const char* text : {"", "0", "-1", "1.5", "5:4", "-1:3", ":", "3:", ":3", "1:2:3", "all", "1000001", "0:1000000",
                           "0:2000000000", "9223372036854775807:9223372036854775807"}) {
    EXPECT_EQ(TraceRange::parse(text).status().message(),
              "must be auto (20 steps), COUNT or FIRST:LAST, counted from 0; up to 1000000 steps")
        << text;
  }
}

TEST(TraceRange, BeginsBehindTheWarmUpOrWithTheLastStepsOfAShortRun) {
  const TraceRange usual;
  EXPECT_EQ(usual.steps_in(0, 1000, 10), (TraceSteps{10, 29}));
  EXPECT_EQ(usual.steps_in(400, 1000, 10), (TraceSteps{410, 429}));
  EXPECT_EQ(usual.steps_in(0, 25, 10), (TraceSteps{5, 24}));
  EXPECT_EQ(usual.steps_in(0, 12, 10), (TraceSteps{0, 19}));
  EXPECT_EQ(TraceRange::parse("3:5")->steps_in(400, 1000, 10), (TraceSteps{3, 5}));
}

}  // namespace
}  // namespace syncopate::experiments

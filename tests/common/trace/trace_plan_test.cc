#include "common/trace/trace_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(TracePlan, ReadsWhatItWrites) {
  const TracePlan plan{.steps = {10, 29}, .capacity = 5000, .steps_a_push = 4};
  EXPECT_EQ(plan.to_text(), "10:29:5000:4");
  const Result<TracePlan> parsed = TracePlan::parse(plan.to_text());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, plan);
}

TEST(TracePlan, RefusesWhatNobodyTraces) {
  for (const char* text : {"", "10:29", "10:29:5000", "10:29:5000:4:1", "10:29:5000:x", "29:10:5000:1", "-1:9:10:1",
                           "0:9:0:1", "0:9:131073:1", "0:9:10:0", "0:9:10:1:"}) {
    const Result<TracePlan> parsed = TracePlan::parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status().message(), testing::HasSubstr(std::string("trace='") + text + "'"));
  }
}

}  // namespace
}  // namespace syncopate

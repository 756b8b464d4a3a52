#include "ps/consistency.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

TEST(Consistency, ParsesItsThreeKindsAndWritesThemBack) {
  for (const char* text : {"sync", "async", "bounded:0", "bounded:1", "bounded:1000000"}) {
    const Result<Consistency> consistency = Consistency::parse(text);
    ASSERT_TRUE(consistency.ok()) << text;
    EXPECT_EQ(consistency->to_string(), text);
  }
  EXPECT_EQ(Consistency::parse("bounded:7")->bound(), 7);
}

TEST(Consistency, SaysWhatIsWrongAndWhatWouldBeRight) {
  for (const char* text : {"", "Sync", "sync ", "bounded", "bounded:", "bounded:-1", "bounded:1000001", "bounded:3x",
                           "bounded: 3", "bsp"}) {
    const Result<Consistency> consistency = Consistency::parse(text);
    ASSERT_FALSE(consistency.ok()) << text;
    EXPECT_EQ(consistency.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(consistency.status().message(),
              fmt::format("'{}' is not sync, async or bounded:k with k from 0 to 1000000", text));
  }
}

TEST(Consistency, AnswersSyncWhenNobodyIsBehind) {
  const Consistency sync = *Consistency::parse("sync");
  EXPECT_TRUE(sync.updates_together());
  EXPECT_TRUE(sync.may_answer(3, 3));
  EXPECT_FALSE(sync.may_answer(3, 2));
}

TEST(Consistency, AnswersBoundedUpToTheBoundAndNoFurther) {
  for (std::int64_t bound : {0, 1, 5}) {
    const Consistency bounded = *Consistency::parse(fmt::format("bounded:{}", bound));
    EXPECT_FALSE(bounded.updates_together());
    for (std::int64_t ahead = 0; ahead < 8; ++ahead) {
      EXPECT_EQ(bounded.may_answer(10 + ahead, 10), ahead <= bound) << bound << " " << ahead;
    }
  }
}

TEST(Consistency, AnswersAsyncAlways) {
  const Consistency async = *Consistency::parse("async");
  EXPECT_FALSE(async.updates_together());
  EXPECT_TRUE(async.may_answer(0, 0));
  EXPECT_TRUE(async.may_answer(1000000, 0));
}

}  // namespace
}  // namespace syncopate::ps

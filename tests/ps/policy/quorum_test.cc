#include "ps/policy/quorum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/policy/consistency.h"

namespace syncopate::ps {
namespace {

TEST(Quorum, IsReadAsItIsWritten) {
  for (const char* text : {"1", "3", "3+200ms", "2+1.5s", "7+250us", "1024+3600s"}) {
    const Result<Quorum> quorum = Quorum::parse(text);
    ASSERT_TRUE(quorum.ok()) << text;
    EXPECT_EQ(quorum->to_string(), text);
  }
  EXPECT_EQ(*Quorum::parse("3+200ms"), (Quorum{.workers = 3, .grace = std::chrono::milliseconds(200)}));
  EXPECT_EQ(Quorum().to_string(), "");
}

TEST(Quorum, RefusesWhatIsNone) {
  for (const char* text : {"", "0", "-1", "1025", "x", "3+", "3+0s", "3+200", "3+-1s", "3+nan", "3+3601s", "3+1s+1s"}) {
    EXPECT_FALSE(Quorum::parse(text).ok()) << text;
  }
  EXPECT_THAT(Quorum::parse("3+200").status().message(), testing::HasSubstr("'3+200' is not K or K+TIME"));
}

TEST(Quorum, MakesAnUpdateOfSoManyPushesOrOfAllThatAreLeft) {
  const Consistency meetings = Consistency::parse("local-sgd:9")->with_quorum({.workers = 3});
  EXPECT_EQ(meetings.pushes_an_update(5, 5), 3);
  EXPECT_EQ(meetings.pushes_an_update(5, 2), 2);
  EXPECT_FALSE(meetings.answers_all_the_same()) << "who comes later goes on from other weights";
  EXPECT_TRUE(Consistency::parse("local-sgd:9")->answers_all_the_same());
}

}  // namespace
}  // namespace syncopate::ps

#include "ps/policy/consistency.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

TEST(Consistency, ParsesItsKindsAndWritesThemBack) {
  for (const char* text : {"sync", "async", "bounded:0", "bounded:1", "bounded:1000000", "softsync:1", "local-sgd:8",
                           "easgd:1", "easgd:1000000"}) {
    const Result<Consistency> consistency = Consistency::parse(text);
    ASSERT_TRUE(consistency.ok()) << text;
    EXPECT_EQ(consistency->to_string(), text);
  }
  EXPECT_EQ(Consistency::parse("bounded:7")->bound(), 7);
  EXPECT_EQ(Consistency::parse("softsync:7")->bound(), 7);
  EXPECT_EQ(Consistency::parse("local-sgd:7")->period(), 7);
  EXPECT_EQ(Consistency::parse("easgd:7")->period(), 7);
  EXPECT_EQ(Consistency::parse("bounded:7")->period(), 1);
}

TEST(Consistency, SaysWhatIsWrongAndWhatWouldBeRight) {
  for (const char* text :
       {"", "Sync", "sync ", "sync:1", "async:", "bounded", "bounded:", "bounded:-1", "bounded:1000001", "bounded:3x",
        "bounded: 3", "softsync:0", "softsync", "local-sgd:0", "easgd:0", "easgd:1:2", "bsp"}) {
    const Result<Consistency> consistency = Consistency::parse(text);
    ASSERT_FALSE(consistency.ok()) << text;
    EXPECT_EQ(consistency.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(consistency.status().message(),
              fmt::format("'{}' is not sync, bounded:k (k from 0 to 1000000), softsync:n (n from 1 to the workers), "
                          "async, local-sgd:k or easgd:k (k from 1 to 1000000)",
                          text));
  }
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

TEST(Consistency, AnswersOthersWhoeverIsBehind) {
  for (const char* text : {"sync", "softsync:2", "async", "local-sgd:3", "easgd:3"}) {
    EXPECT_TRUE(Consistency::parse(text)->may_answer(1000000, 0)) << text;
  }
}

TEST(Consistency, MakesAnUpdateFromAsManyPushesAsItsKindSays) {
  const auto pushes = [](const char* text, int workers, int live) {
    return Consistency::parse(text)->pushes_an_update(workers, live);
  };
  EXPECT_EQ(pushes("sync", 4, 4), 4);
  EXPECT_EQ(pushes("sync", 4, 3), 3);
  EXPECT_EQ(pushes("local-sgd:9", 4, 3), 3);
  EXPECT_EQ(pushes("async", 4, 4), 1);
  EXPECT_EQ(pushes("bounded:3", 4, 4), 1);
  EXPECT_EQ(pushes("easgd:3", 4, 4), 1);
  EXPECT_EQ(pushes("softsync:1", 7, 7), 7);
  EXPECT_EQ(pushes("softsync:2", 7, 7), 3);
  EXPECT_EQ(pushes("softsync:7", 7, 7), 1);
  EXPECT_EQ(pushes("softsync:1", 7, 2), 7);  // whoever they come from
  const Consistency backed_up = Consistency::parse("sync")->with_backup_workers(1);
  EXPECT_EQ(backed_up.pushes_an_update(4, 4), 3);
  EXPECT_EQ(backed_up.pushes_an_update(4, 3), 3);
  EXPECT_EQ(backed_up.pushes_an_update(4, 2), 2);
}

TEST(Consistency, KnowsWhereGradientsMayBeStale) {
  for (const char* text : {"bounded:1", "softsync:1", "async"}) {
    EXPECT_TRUE(Consistency::parse(text)->applies_stale_gradients()) << text;
  }
  for (const char* text : {"sync", "local-sgd:2", "easgd:2"}) {
    EXPECT_FALSE(Consistency::parse(text)->applies_stale_gradients()) << text;
  }
}

}  // namespace
}  // namespace syncopate::ps

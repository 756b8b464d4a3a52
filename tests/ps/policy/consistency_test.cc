#include "ps/policy/consistency.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ps/policy/consistency_state.h"
#include "tests/support/every_consistency.h"

namespace syncopate::ps {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Consistency, ParsesItsKindsAndWritesThemBack) {
  for (const char* text : {"sync", "async", "bounded:0", "bounded:1", "bounded:1000000", "softsync:1", "local-sgd:8",
                           "easgd:1", "easgd:1000000"}) {
    const Result<Consistency> consistency = Consistency::parse(text);
    ASSERT_TRUE(consistency.ok()) << text;
    EXPECT_EQ(consistency->to_string(), text);
  }
  EXPECT_EQ(Consistency::parse("bounded:7")->parameter(0), 7);
  EXPECT_EQ(Consistency::parse("softsync:7")->parameter(0), 7);
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
    EXPECT_EQ(consistency.status().message(), fmt::format("'{}' is not {}", text, Consistency::forms()));
  }
}

TEST(Consistency, SaysTheRangeOfEachParameter) {
  EXPECT_THAT(Consistency::forms(), StartsWith("sync, bounded:k (k from 0 to 1000000), "));
  EXPECT_THAT(Consistency::forms(), HasSubstr(", softsync:n (n from 1 to the workers), "));
  EXPECT_THAT(Consistency::forms(), EndsWith(" or easgd:k (k from 1 to 1000000)"));
}

TEST(Consistency, TakesAsManyParametersAsItsTraitsNameAndNoneBelowTheOneBefore) {
  for (const ConsistencyTraits& traits : consistency_traits()) {
    SCOPED_TRACE(traits.usage());
    const Result<Consistency> least = Consistency::parse(consistency_example(traits, 0));
    ASSERT_TRUE(least.ok()) << least.status().message();
    EXPECT_EQ(&least->traits(), &traits);
    EXPECT_EQ(least->to_string(), consistency_example(traits, 0));
    EXPECT_EQ(Consistency::parse(consistency_example(traits, 1))->to_string(), consistency_example(traits, 1));
    EXPECT_FALSE(Consistency::parse(consistency_example(traits, 0) + ":9").ok());
    EXPECT_FALSE(Consistency::parse(consistency_example(traits, 0) + "x").ok());
    std::string above(traits.name);
    for (const ConsistencyParameter& parameter : traits.parameters) {
      if (parameter.name.empty()) break;
      EXPECT_FALSE(Consistency::parse(above).ok()) << above;  // one too few
      const std::string wrong[] = {fmt::format("{}:{}", above, parameter.least - 1),
                                   fmt::format("{}:{}", above, parameter.most + 1)};
      for (const std::string& text : wrong) EXPECT_FALSE(Consistency::parse(text).ok()) << text;
      above += fmt::format(":{}", parameter.most);
    }
  }
}

TEST(Consistency, HasOneRowOfTraitsForEachKind) {
  std::set<std::string_view> names;
  for (const ConsistencyTraits& traits : consistency_traits()) {
    EXPECT_TRUE(names.insert(traits.name).second) << traits.name;
    EXPECT_FALSE(traits.sentence.empty()) << traits.name;
    EXPECT_THAT(Consistency::forms(), HasSubstr(traits.usage()));
  }
}

// Rows that contradict themselves would make servers that contradict workers.
TEST(Consistency, HasRowsThatGoTogether) {
  for (const ConsistencyTraits& traits : consistency_traits()) {
    SCOPED_TRACE(traits.usage());
    const bool has_parameter = !traits.parameters[0].name.empty();
    EXPECT_TRUE(!traits.backup_workers || traits.updates_together());
    EXPECT_TRUE(!traits.pipeline || traits.applies_stale_gradients());
    EXPECT_TRUE(!traits.pipeline || !traits.waits_for_others());  // what is under way may not wait for what follows
    EXPECT_TRUE(traits.bound == nullptr || traits.applies_stale_gradients());
    EXPECT_TRUE(traits.bound == nullptr || has_parameter);
    EXPECT_TRUE(!traits.pushes_weights || has_parameter);
    EXPECT_TRUE(!traits.tables || !traits.pushes_weights);
    EXPECT_TRUE(!traits.tables || traits.update != ConsistencyTraits::Update::kSeveralPushes);
  }
}

Membership everybody(int workers) {
  Membership members(workers);
  for (int worker = 0; worker < workers; ++worker) EXPECT_TRUE(members.join(worker, {}).ok());
  return members;
}

TEST(ConsistencyState, LetsAWorkerLeadByTheBoundAndNoFurther) {
  const Membership members = everybody(2);
  for (std::int64_t bound : {0, 1, 5}) {
    ConsistencyState state(*Consistency::parse(fmt::format("bounded:{}", bound)), members);
    for (std::int64_t lead = 0; lead < 8; ++lead) {
      EXPECT_EQ(state.may_respond(0), lead <= bound) << bound << " " << lead;
      EXPECT_EQ(state.waits_for(0, 1), lead > bound);
      EXPECT_TRUE(state.may_respond(1));
      state.on_push({.worker = 0, .clock = lead + 1});
    }
  }
}

TEST(ConsistencyState, LetsAWorkerLeadAtWillUnlessTheRuleHasABound) {
  const Membership members = everybody(2);
  for (const ConsistencyTraits& traits : consistency_traits()) {
    const Consistency consistency = *Consistency::parse(consistency_example(traits, 1));
    ConsistencyState state(consistency, members);
    for (std::int64_t clock = 1; clock <= 2000; ++clock) state.on_push({.worker = 0, .clock = clock});
    EXPECT_EQ(state.may_respond(0), traits.bound == nullptr) << traits.usage();
    EXPECT_TRUE(state.may_respond(1)) << traits.usage();
    EXPECT_EQ(state.waits_for(0, 1), traits.bound != nullptr) << traits.usage();
  }
}

// Whoever is slowest always goes on, so that a job with a bound makes progress whatever becomes of the others.
TEST(ConsistencyState, NeverHoldsTheSlowestWorkerNorWaitsForOneThatIsGone) {
  for (const ConsistencyTraits& traits : consistency_traits()) {
    SCOPED_TRACE(traits.usage());
    Membership members = everybody(3);
    ConsistencyState state(*Consistency::parse(consistency_example(traits, 1)), members);
    state.restore({40, 30, 20});
    EXPECT_TRUE(state.may_respond(2));
    EXPECT_TRUE(members.lose(2));
    EXPECT_TRUE(state.may_respond(1));
    EXPECT_TRUE(members.lose(1));
    EXPECT_TRUE(state.may_respond(0));
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

}  // namespace
}  // namespace syncopate::ps

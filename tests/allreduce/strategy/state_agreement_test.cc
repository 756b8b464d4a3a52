#include "allreduce/strategy/state_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

MemberStatus at(int worker, std::int64_t steps, std::vector<std::uint64_t> found = {}) {
  return {.worker = worker,
          .has_state = true,
          .steps = steps,
          .content = static_cast<std::uint64_t>(100 + steps),
          .found = std::move(found)};
}
MemberStatus new_one(int worker) { return {.worker = worker}; }

TEST(StatePlan, OfMembersWithNothingIsANewJob) {
  const std::vector<MemberStatus> members{new_one(0), new_one(1)};
  const Result<StatePlan> plan = plan_state(members);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->giver, -1);
  EXPECT_EQ(plan->first_step, 0);
  EXPECT_FALSE(plan->anybody_takes());
  EXPECT_EQ(describe(*plan, members), "a new job");
}

TEST(StatePlan, GivesNothingWhereAllAreAtTheSameStep) {
  const std::vector<MemberStatus> members{at(0, 7), at(2, 7), at(3, 7)};
  const Result<StatePlan> plan = plan_state(members);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->first_step, 7);
  EXPECT_FALSE(plan->anybody_takes());
  EXPECT_EQ(describe(*plan, members), "step 7, which all have");
}

TEST(StatePlan, GivesTheFurthestStateToThoseBehindAndToNewOnes) {
  const std::vector<MemberStatus> members{at(0, 6), at(2, 7), new_one(3), at(5, 7)};
  const Result<StatePlan> plan = plan_state(members);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->first_step, 7);
  EXPECT_EQ(plan->giver, 1) << "a rank";
  EXPECT_THAT(plan->takes, ElementsAre(true, false, true, false));
  EXPECT_EQ(describe(*plan, members), "step 7, given by worker 2 to workers 0, 3");
}

TEST(StatePlan, GoesOnFromStepNoneAsWell) {
  const Result<StatePlan> plan = plan_state(std::vector{new_one(0), at(1, 0)});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->giver, 1);
  EXPECT_EQ(plan->first_step, 0);
}

TEST(StatePlan, KnowsWhatAnyMemberHasFound) {
  const Result<StatePlan> plan =
      plan_state(std::vector{at(0, 7, {0, 0, 2}), at(1, 7, {64, 0, 2}), MemberStatus{.worker = 2, .found = {0, 0, 0}}});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->found, ElementsAre(64u, 0u, 2u));
}

TEST(StatePlan, RefusesMembersThatCannotBeOfOneJobAndNamesThem) {
  EXPECT_THAT(plan_state(std::vector{at(0, 7), at(2, 9)}).status().message(),
              HasSubstr("worker 2 has finished 9 steps, worker 0 only 7"));
  MemberStatus other = at(4, 7);
  other.content = 1;
  EXPECT_THAT(plan_state(std::vector{at(0, 7), other}).status().message(),
              HasSubstr("workers 0 and 4 have both finished 7 steps, but hold different weights"));
  EXPECT_THAT(plan_state(std::vector{at(0, -1), new_one(2)}).status().message(),
              HasSubstr("worker 0 has finished -1 steps"));
  EXPECT_THAT(plan_state(std::vector{at(1, 7), at(1, 7)}).status().message(),
              HasSubstr("rank 0 is worker 1, rank 1 is worker 1"));
}

TEST(ShareStatuses, ShowsEverybodyWhatAllHaveSaid) {
  const auto group = testing_support::connect_group("inproc", 3);
  testing_support::run_ranks(3, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    MemberStatus own = at(2 * rank, (std::int64_t{1} << 50) + rank, {~std::uint64_t{0}, 5});
    own.content = 0xFEDCBA9876543210ull + static_cast<std::uint64_t>(rank);
    const Result<std::vector<MemberStatus>> all = share_statuses(*ring, own, testing_support::soon());
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(all->size(), 3u);
    for (int other = 0; other < 3; ++other) {
      const MemberStatus& said = (*all)[static_cast<std::size_t>(other)];
      EXPECT_EQ(said.worker, 2 * other);
      EXPECT_TRUE(said.has_state);
      EXPECT_EQ(said.steps, (std::int64_t{1} << 50) + other);
      EXPECT_EQ(said.content, 0xFEDCBA9876543210ull + static_cast<std::uint64_t>(other));
      EXPECT_THAT(said.found, ElementsAre(~std::uint64_t{0}, 5u));
    }
  });
}

}  // namespace
}  // namespace syncopate::allreduce

#include "experiments/cluster/coordinator/membership_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using Loss = MembershipPolicy::Loss;

JobPlan plan_of(int servers, int standbys, int workers) {
  JobPlan plan;
  const auto add = [&](Role role, int count) {
    for (int rank = 0; rank < count; ++rank) plan.processes.push_back({.role = role, .rank = rank, .host = "here"});
  };
  add(Role::kServer, servers);
  add(Role::kStandby, standbys);
  add(Role::kWorker, workers);
  add(Role::kEvaluator, 1);
  return plan;
}

constexpr MembershipPolicy::Circumstances kTrained{};

TEST(MembershipPolicy, BeginsWithAllThatThePlanHas) {
  const JobPlan plan = plan_of(1, 1, 2);
  const MembershipPolicy policy(plan, {});
  EXPECT_EQ(policy.current().number, 0);
  EXPECT_TRUE(policy.current().begins);
  EXPECT_THAT(policy.current().workers, ElementsAre(0, 1));
  EXPECT_THAT(policy.current().servers, ElementsAre(ServerRanks{.has_server = true, .has_standby = true}));
  for (std::size_t process = 0; process < 4; ++process) EXPECT_TRUE(policy.is_member(process));
  EXPECT_FALSE(policy.is_member(4));  // the evaluator
}

TEST(MembershipPolicy, ALostWorkerLeavesTheOthersAsTheRecoverySays) {
  const JobPlan plan = plan_of(0, 0, 3);
  EXPECT_EQ(MembershipPolicy(plan, {}).on_lost(1, kTrained), Loss::kEndsRun);
  EXPECT_EQ(MembershipPolicy(plan, {.survives_workers = true}).on_lost(1, kTrained), Loss::kOthersGoOn);
  MembershipPolicy elastic(plan, {.survives_workers = true, .regroups_without_worker = true});
  EXPECT_EQ(elastic.on_lost(1, kTrained), Loss::kRegroup);
  EXPECT_THAT(elastic.proclaim(false).workers, ElementsAre(0, 2));
  EXPECT_EQ(elastic.current().number, 1);
  EXPECT_EQ(elastic.on_lost(0, kTrained), Loss::kRegroup);
  EXPECT_EQ(elastic.on_lost(2, kTrained), Loss::kEndsRun);
}

TEST(MembershipPolicy, AWorkerComesBackInTheNextMembership) {
  const JobPlan plan = plan_of(1, 0, 3);
  MembershipPolicy policy(plan, {.survives_workers = true, .respawn_after = Duration{}});
  EXPECT_EQ(policy.on_lost(1, kTrained), Loss::kOthersGoOn);
  EXPECT_EQ(policy.on_lost(2, kTrained), Loss::kOthersGoOn);
  policy.on_ready(2);  // worker 1
  policy.on_ready(2);
  EXPECT_THAT(policy.proclaim(false).workers, ElementsAre(1, 2));
}

TEST(MembershipPolicy, AStandbyTakesOverAndLeadsUntilItIsLostItself) {
  const JobPlan plan = plan_of(1, 1, 1);
  MembershipPolicy policy(plan, {.survives_workers = true, .has_standbys = true});
  EXPECT_EQ(policy.on_lost(0, kTrained), Loss::kRegroup);
  EXPECT_THAT(policy.proclaim(false).servers,
              ElementsAre(ServerRanks{.has_server = false, .has_standby = true, .standby_leads = true}));
  policy.on_ready(0);
  EXPECT_THAT(policy.proclaim(false).servers,
              ElementsAre(ServerRanks{.has_server = true, .has_standby = true, .standby_leads = true}));
  EXPECT_EQ(policy.on_lost(1, kTrained), Loss::kRegroup);
  EXPECT_THAT(policy.proclaim(false).servers, ElementsAre(ServerRanks{}));
  EXPECT_EQ(policy.on_lost(0, kTrained), Loss::kEndsRun);
}

TEST(MembershipPolicy, ServersGoBackToACheckpointOnceThereIsOne) {
  const JobPlan plan = plan_of(2, 0, 1);
  const Recovery recovery{.survives_workers = true, .goes_back = true};
  EXPECT_EQ(MembershipPolicy(plan, recovery).on_lost(1, kTrained), Loss::kEndsRun);
  MembershipPolicy policy(plan, recovery);
  EXPECT_EQ(policy.on_lost(1, {.can_go_back = true}), Loss::kGoBack);
  policy.on_ready(1);
  EXPECT_EQ(policy.proclaim(false, "checkpoints/step-000100").restore, "checkpoints/step-000100");
  EXPECT_TRUE(policy.is_member(1));
}

TEST(MembershipPolicy, BeforeTrainingAServerIsNeeded) {
  const JobPlan plan = plan_of(1, 1, 1);
  MembershipPolicy policy(plan, {.survives_workers = true, .has_standbys = true});
  EXPECT_EQ(policy.on_lost(1, {.begins = true}), Loss::kEndsRun);
}

}  // namespace
}  // namespace syncopate::experiments

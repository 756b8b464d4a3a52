#include "experiments/cluster/coordinator/recovery.h"

#include <gtest/gtest.h>

#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kLossAt{1000s};
constexpr Recovery kGoesBack{.survives_workers = true, .goes_back = true};
constexpr Recovery kElastic{.survives_workers = true, .regroups_without_worker = true, .respawn_after = 2s};

// A run whose processes train.
struct TrainingRun {
  TrainingRun(const JobPlan& job, const Recovery& recovery)
      : plan(job), roster(plan, kLossAt), policy(plan, roster, recovery, "") {
    for (std::size_t i = 0; i < plan.processes.size(); ++i) {
      roster.on_hello(i, 100 + static_cast<int>(i), "box");
      roster.apply(i, ProcessEvent::kTrainingBegins);
    }
  }
  std::size_t find(Role role, int rank) const {
    for (std::size_t i = 0; i < plan.processes.size(); ++i) {
      if (plan.processes[i].role == role && plan.processes[i].rank == rank) return i;
    }
    return 0;
  }
  RecoveryPolicy::Response lose(Role role, int rank, RunPhase phase = RunPhase::kTraining) {
    for (const ProcessEvent event : {ProcessEvent::kExit, ProcessEvent::kLoss}) roster.apply(find(role, rank), event);
    return policy.on_lost(find(role, rank), phase);
  }
  // None: it is not restarted.
  std::optional<TimePoint> restart_of(Role role, int rank, RunPhase phase) const {
    const RecoveryPolicy::Restart restart = policy.restart_of(find(role, rank), phase, kLossAt);
    const auto* at = std::get_if<TimePoint>(&restart);
    return at ? std::optional(*at) : std::nullopt;
  }

  const JobPlan plan;
  ProcessRoster roster;
  RecoveryPolicy policy;
};

TEST(RecoveryPolicy, EndsARunThatNeedsEveryWorker) {
  TrainingRun run(plan_of(Mode::kAllreduce, 3, 0), {});
  const RecoveryPolicy::Response response = run.lose(Role::kWorker, 1);
  EXPECT_EQ(std::get<RecoveryPolicy::EndsRun>(response).because, "; this mode needs every worker");
}

TEST(RecoveryPolicy, FormsAMembershipEpochWhereTheOthersHaveToConnectAnew) {
  TrainingRun elastic(plan_of(Mode::kAllreduce, 3, 0), kElastic);
  RecoveryPolicy::Response response = elastic.lose(Role::kWorker, 1);
  EXPECT_EQ(std::get<RecoveryPolicy::RunGoesOn>(response).consequence, "2 workers go on");
  EXPECT_TRUE(std::get<RecoveryPolicy::RunGoesOn>(response).needs_epoch);
  TrainingRun ps(plan_of(Mode::kPs, 3, 1), {.survives_workers = true});
  response = ps.lose(Role::kWorker, 1);
  EXPECT_FALSE(std::get<RecoveryPolicy::RunGoesOn>(response).needs_epoch) << "servers are told";
}

// The others would wait for it until their deadlines.
TEST(RecoveryPolicy, FormsAMembershipEpochAnewWithoutAWorkerThatMayNotHaveConnected) {
  TrainingRun run(plan_of(Mode::kPs, 3, 1, 1), {.survives_workers = true, .has_standbys = true});
  run.lose(Role::kServer, 0);
  EXPECT_EQ(run.policy.begin_epoch(RunPhase::kTraining), std::nullopt);
  RecoveryPolicy::Response response = run.lose(Role::kWorker, 1);
  EXPECT_TRUE(std::get<RecoveryPolicy::RunGoesOn>(response).needs_epoch);
  EXPECT_EQ(run.policy.begin_epoch(RunPhase::kTraining), std::nullopt);
  run.roster.on_step(run.find(Role::kWorker, 0), run.policy.membership().number);
  run.policy.on_step();
  response = run.lose(Role::kWorker, 2);
  EXPECT_FALSE(std::get<RecoveryPolicy::RunGoesOn>(response).needs_epoch) << "all have connected";
}

TEST(RecoveryPolicy, GoesBackToACheckpointOnceTheServerIsThereAgain) {
  TrainingRun run(plan_of(Mode::kPs, 2, 2), kGoesBack);
  run.policy.on_checkpoint("checkpoints/step-000100");
  const RecoveryPolicy::Response response = run.lose(Role::kServer, 1);
  const auto& goes_on = std::get<RecoveryPolicy::RunGoesOn>(response);
  EXPECT_EQ(goes_on.event, RunEvent::kServerAwaited);
  EXPECT_FALSE(goes_on.needs_epoch);
  EXPECT_TRUE(run.policy.awaits_server());
  run.policy.on_admitted(run.find(Role::kServer, 1));
  EXPECT_FALSE(run.policy.awaits_server());
  EXPECT_EQ(run.policy.begin_epoch(RunPhase::kRestoring), std::nullopt);
  EXPECT_EQ(run.policy.membership().restore, "checkpoints/step-000100");
}

TEST(RecoveryPolicy, DoesNotGoBackOnceTrainingIsOver) {
  TrainingRun run(plan_of(Mode::kPs, 2, 2), kGoesBack);
  run.policy.on_checkpoint("checkpoints/step-000100");
  const RecoveryPolicy::Response response = run.lose(Role::kServer, 1, RunPhase::kTrainingOver);
  EXPECT_TRUE(std::holds_alternative<RecoveryPolicy::EndsRun>(response));
}

TEST(RecoveryPolicy, RestartsWhileTheRunIsOpen) {
  TrainingRun run(plan_of(Mode::kAllreduce, 3, 0), kElastic);
  (void)run.lose(Role::kWorker, 1);
  EXPECT_EQ(run.restart_of(Role::kWorker, 1, RunPhase::kTraining), kLossAt + 2s);
  for (const RunPhase phase : {RunPhase::kClosed, RunPhase::kTrainingOver, RunPhase::kDraining}) {
    EXPECT_EQ(run.restart_of(Role::kWorker, 1, phase), std::nullopt) << name_of(phase);
  }
}

TEST(RecoveryPolicy, RestartsANeededServerAfterEverLongerPausesUntilItIsInVain) {
  TrainingRun run(plan_of(Mode::kPs, 2, 1), kGoesBack);
  run.policy.on_checkpoint("checkpoints/step-000100");
  (void)run.lose(Role::kServer, 0);
  const std::size_t server = run.find(Role::kServer, 0);
  for (const Duration pause : {0ms, 200ms, 400ms, 800ms, 1600ms, 3200ms}) {
    EXPECT_EQ(run.restart_of(Role::kServer, 0, RunPhase::kRestoring), kLossAt + pause);
    run.roster.plan_restart(server, kLossAt);
    run.roster.on_restart(server, kLossAt);
    run.roster.apply(server, ProcessEvent::kExit);
  }
  const RecoveryPolicy::Restart in_vain = run.policy.restart_of(server, RunPhase::kRestoring, kLossAt);
  EXPECT_EQ(std::get<Verdict>(in_vain).line, "server 0 was started again 6 times, and has not taken part since");
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/checkpoint/carry_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/checkpoint/run_facts.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kSamples = 6400;

ResolvedRun run_of(Mode mode, int workers, int batch_size, const char* consistency = "sync") {
  ResolvedRun run;
  run.mode = mode;
  run.workers = workers;
  run.batch_size = batch_size;
  run.consistency = *ps::Consistency::parse(consistency);
  return run;
}

ParamLayout layout() {
  ParamLayout layout;
  layout.add("weight", {3});
  return layout;
}

Result<std::optional<CarryOver>> planned(const ResolvedRun& before, const ResolvedRun& now, std::int64_t step,
                                         std::vector<StoredPart> parts = {}) {
  const Manifest manifest{.step = step, .facts = facts_of(before, layout(), 100), .parts = std::move(parts)};
  const auto facts = facts_of(now, layout(), 100);
  return plan_carry_over(manifest, {.config = now, .facts = facts, .train_samples = kSamples});
}

CarryOver carried(const ResolvedRun& before, const ResolvedRun& now, std::int64_t step,
                  std::vector<StoredPart> parts = {}) {
  const auto plan = planned(before, now, step, std::move(parts));
  EXPECT_TRUE(plan.ok() && plan->has_value()) << plan.status().message();
  return plan.ok() && *plan ? **plan : CarryOver();
}

TEST(CarryOver, IsNotNeededForTheSameRun) {
  const ResolvedRun run = run_of(Mode::kAllreduce, 2, 32);
  const auto plan = planned(run, run, 7);
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->has_value());
}

TEST(CarryOver, KeepsThePlaceWhereTheBatchOfAllWorkersIsTheSame) {
  const CarryOver plan = carried(run_of(Mode::kAllreduce, 2, 32), run_of(Mode::kPs, 4, 16), 130);
  EXPECT_EQ(plan.step, 130);
  EXPECT_THAT(plan.left_behind, IsEmpty());
  EXPECT_THAT(plan.choices, ElementsAre("--batch-size is 32 there and 16 here", "--mode is allreduce there and ps here",
                                        "--workers is 2 there and 4 here"));
}

TEST(CarryOver, LeavesNothingBehindBetweenOneWorkerAndTwoOfHalfItsBatch) {
  EXPECT_THAT(carried(run_of(Mode::kAllreduce, 2, 32), run_of(Mode::kLocal, 1, 64), 130).left_behind, IsEmpty());
  EXPECT_THAT(carried(run_of(Mode::kLocal, 1, 64), run_of(Mode::kAllreduce, 2, 32), 130).left_behind, IsEmpty());
}

TEST(CarryOver, GoesOnEpochByEpochWhereTheBatchOfAllWorkersIsAnother) {
  // 100 steps an epoch there, 66 here; step 130 is 30 steps of 64 samples into the second epoch, which are 20 of 96.
  const CarryOver plan = carried(run_of(Mode::kAllreduce, 2, 32), run_of(Mode::kAllreduce, 3, 32), 130);
  EXPECT_EQ(plan.step, 66 + 20);
  EXPECT_THAT(plan.left_behind, IsEmpty());
  const CarryOver other = carried(run_of(Mode::kAllreduce, 2, 32), run_of(Mode::kAllreduce, 3, 32), 131);
  EXPECT_EQ(other.step, 66 + 20);
  EXPECT_THAT(other.left_behind, ElementsAre(HasSubstr("64 samples of epoch 1 are trained again")));
}

TEST(CarryOver, NamesWhatIsLeftBehind) {
  ResolvedRun before = run_of(Mode::kAllreduce, 2, 32);
  before.compress = {.kind = CodecKind::kTopK, .ratio = 0.1};
  const std::vector<StoredPart> parts{{.writer = "worker-0",
                                       .files = {{.name = "a", .part = "weights"},
                                                 {.name = "b", .part = "residual.worker0"},
                                                 {.name = "c", .part = "local_state.worker0"}}},
                                      {.writer = "worker-1", .files = {{.name = "d", .part = "residual.worker1"}}}};
  EXPECT_THAT(carried(before, run_of(Mode::kAllreduce, 3, 32), 100, parts).left_behind,
              ElementsAre(HasSubstr("running moments"), HasSubstr("error feedback")));
}

TEST(CarryOver, OfWorkersAtTheirOwnPaceCountsWhatServersHaveLearnt) {
  const std::vector<StoredPart> parts{{.writer = "shard-0", .counts = {{"chunk@0", {260, 0, 0, 0, 0, 0}}}}};
  const CarryOver plan = carried(run_of(Mode::kPs, 2, 32, "async"), run_of(Mode::kAllreduce, 2, 32), 140, parts);
  EXPECT_EQ(plan.step, 130);
  EXPECT_THAT(plan.left_behind, ElementsAre(HasSubstr("which batches had been trained"), HasSubstr("staleness")));
}

TEST(CarryOver, IsRefusedWithTheReason) {
  const ResolvedRun plain = run_of(Mode::kAllreduce, 2, 32);
  const auto refusal = [](const ResolvedRun& before, const ResolvedRun& now) {
    const auto plan = planned(before, now, 10);
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
    return plan.status().message();
  };
  ResolvedRun averaging = plain;
  averaging.sync_every = 4;
  EXPECT_THAT(refusal(averaging, run_of(Mode::kAllreduce, 3, 32)), HasSubstr("--sync-every"));
  const ResolvedRun elastic = run_of(Mode::kPs, 2, 32, "easgd:4");
  EXPECT_THAT(refusal(elastic, plain),
              HasSubstr("its run has --consistency=easgd:4: each worker has weights of its own"));
  ResolvedRun local_steps = run_of(Mode::kPs, 2, 32, "local-sgd:8");
  EXPECT_THAT(refusal(plain, local_steps), AllOf(HasSubstr("cannot be carried over"),
                                                 HasSubstr("this run has --consistency=local-sgd:8: each worker")));
  ResolvedRun backups = run_of(Mode::kPs, 3, 32);
  backups.backup_workers = 1;
  EXPECT_THAT(refusal(plain, backups), HasSubstr("--backup-workers=1: gradients were dropped"));
  ResolvedRun other = run_of(Mode::kPs, 2, 32);
  other.optimizer = OptimizerChoice::kSgd;
  EXPECT_THAT(refusal(plain, other), HasSubstr("is of another run: "));
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/checkpoint/carry_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/checkpoint/run_facts.h"
#include "ps/server/shard_state.h"
#include "ps/tables/row_partition.h"
#include "tests/experiments/checkpoint/small_checkpoint.h"

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

// What a server of an asynchronous run keeps: ones as weights and first moments, twos as second moments.
TrainingState shard_of_ones(std::size_t shard, std::int64_t chunk_updates, std::int64_t table_updates) {
  const Range dense = small_layout().dense();
  const Range range = shard == 0 ? Range{dense.begin, dense.begin + 16} : Range{dense.begin + 16, dense.end};
  TrainingState state;
  state.step = 3;
  put(state, state_part::kWeights, range, 1);
  put(state, state_part::kOptimizer[0], range, 1);
  put(state, state_part::kOptimizer[1], range, 2);
  RowsState& rows = state.rows[0];
  rows.row_floats = 12;
  for (RowKey key = 0; rows.keys.size() < 2; ++key) {
    if (ps::shard_of_row(0, key, 2) != shard) continue;
    rows.keys.push_back(key);
    for (const float value : {1.0f, 1.0f, 2.0f}) rows.values.insert(rows.values.end(), 4, value);
  }
  ps::put_chunk_counts(range.begin, {.version = chunk_updates, .clocks = ps::Clocks(2)}, state);
  ps::put_table_counts(0, shard, 2, {.version = table_updates, .clocks = ps::Clocks(2)}, state);
  return state;
}

class CarriedMoments : public testing::TestWithParam<OptimizerChoice> {};

// m / (1 - beta^n) is what an update uses of a moment after n of them: it stays as it is.
TEST_P(CarriedMoments, AreScaledByWhatTheirBiasCorrectionsBecome) {
  ResolvedRun before = run_of(Mode::kPs, 2, 32, "async"), now = run_of(Mode::kAllreduce, 4, 16);
  before.optimizer = now.optimizer = GetParam();
  const auto facts_there = facts_of(before, small_layout(), 100), facts_here = facts_of(now, small_layout(), 100);
  const testing_support::TemporaryFolder folder;
  CheckpointStore store(folder.path());
  const std::string attempt = store.folder() + "/" + attempt_name(3, 0);
  ASSERT_TRUE(make_folder(attempt).ok());
  Manifest manifest{.run = "a-run", .step = 3, .facts = facts_there};
  constexpr std::int64_t kChunkUpdates[] = {6, 8}, kTableUpdates[] = {7, 20};
  for (std::size_t i = 0; i < 2; ++i) {
    manifest.parts.push_back(written({.folder = attempt, .writer = "shard-" + std::to_string(i)},
                                     shard_of_ones(i, kChunkUpdates[i], kTableUpdates[i])));
  }
  ASSERT_TRUE(store.complete(manifest, 0, nullptr).ok());
  const Result<Checkpoint> from = Checkpoint::open(store.path_of(3));
  ASSERT_TRUE(from.ok()) << from.status().message();

  const Successor successor{.config = now, .facts = facts_here, .train_samples = kSamples};
  const auto plan = plan_carry_over(from->manifest(), successor);
  ASSERT_TRUE(plan.ok() && plan->has_value()) << plan.status().message();
  ASSERT_EQ((*plan)->step, 3) << "6 batches of 32, which are 3 steps of 4 workers that have 16 each";
  const testing_support::TemporaryFolder carried_folder;
  const StateForms forms{small_layout(), {}};
  const Result<std::string> path = carry_over(*from, forms, **plan, successor, carried_folder.path(), nullptr);
  ASSERT_TRUE(path.ok()) << path.status().message();
  TrainingState state;
  const Result<Checkpoint> carried = Checkpoint::open(*path);
  ASSERT_TRUE(carried.ok() && carried->read(forms, {}, state).ok());

  const auto factor = [](double beta, std::int64_t updates) {
    return static_cast<float>((1 - std::pow(beta, 3)) / (1 - std::pow(beta, updates)));
  };
  const Range dense = small_layout().dense();
  const auto scaled = [&](const char* name, std::size_t element) {
    return all_of(state, name, {element, element + 1})[0] / small_value(element, 1);
  };
  const std::size_t last = small_layout().tensors()[2].range.begin;
  EXPECT_FLOAT_EQ(scaled(state_part::kOptimizer[0], dense.begin), factor(0.9, 6));
  EXPECT_FLOAT_EQ(scaled(state_part::kOptimizer[1], dense.begin), 2 * factor(0.999, 6));
  EXPECT_FLOAT_EQ(scaled(state_part::kOptimizer[0], last), factor(0.9, 8));
  EXPECT_FLOAT_EQ(scaled(state_part::kWeights, last), 1);
  const RowsState& rows = state.rows.at(0);
  ASSERT_EQ(rows.keys.size(), 4u);
  for (std::size_t i = 0; i < rows.keys.size(); ++i) {
    const std::int64_t updates = kTableUpdates[ps::shard_of_row(0, rows.keys[i], 2)];
    EXPECT_FLOAT_EQ(rows.values[12 * i], 1);
    EXPECT_FLOAT_EQ(rows.values[12 * i + 4], factor(0.9, updates)) << "row " << rows.keys[i];
    EXPECT_FLOAT_EQ(rows.values[12 * i + 11], 2 * factor(0.999, updates)) << "row " << rows.keys[i];
  }
}

INSTANTIATE_TEST_SUITE_P(OfEach, CarriedMoments, testing::Values(OptimizerChoice::kAdam, OptimizerChoice::kAdamW));

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

// SplitStrategy over an allreduce and servers of tables.
#include "common/tables/split_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allreduce/strategy/allreduce_strategy.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "tests/support/table_steps.h"

namespace syncopate {
namespace {

using testing_support::connect_direct;
using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::table_layout;
using testing_support::TableSteps;

constexpr std::int64_t kRows = 40;
const SteadyClock kClock;

// The state that each process saves, by rank of the servers' group.
using States = std::vector<TrainingState>;

struct Job {
  ps::PsGroup group;
  ExchangeChoice choice{.dense_by_servers = false, .tables_by_servers = {true, true}};
  OptimizerConfig rule{.kind = OptimizerKind::kAdam, .weight_decay = 0.01f};
  const States* from = nullptr;  // null: it begins
};

// Runs body(steps, strategy) on each worker, and returns what all have saved after it.
template <typename Body>
States run(const Job& job, const Body& body) {
  const auto collectives = connect_direct(job.group.workers);
  const auto endpoints = connect_group("shm", job.group.size());
  States states(endpoints.size());
  run_ranks(job.group.size(), [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const TrainingState* const from = job.from != nullptr ? &(*job.from)[at] : nullptr;
    if (!job.group.is_worker(rank)) {
      ps::ShardServer server({.group = job.group,
                              .consistency = *ps::Consistency::parse("sync"),
                              .optimizer = job.rule,
                              .seed = TableSteps::kSeed,
                              .restored = from},
                             *endpoints[at], kClock);
      const Status status = server.serve();
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(server.save(states[at]));
      return;
    }
    SplitStrategy strategy(
        allreduce::make_allreduce_strategy(
            *collectives[at], {.optimizer = job.rule, .bucket_bytes = 1 << 20, .seed = TableSteps::kSeed}, kClock),
        std::make_unique<ps::PsStrategy>(ps::PsStrategyOptions{.group = job.group, .goes_on = from != nullptr},
                                         *endpoints[at], kClock, nullptr),
        [&](const ParamLayout&) { return job.choice; });
    TableSteps steps(strategy, rank, kRows, from);
    body(steps, strategy);
    EXPECT_TRUE(strategy.save(states[at]).ok());
    EXPECT_TRUE(strategy.leave().ok());
  });
  return states;
}

std::vector<ExchangeChoice> all_choices() {
  std::vector<ExchangeChoice> choices;
  for (const bool dense : {false, true}) {
    for (const bool users : {false, true}) {
      for (const bool items : {false, true}) choices.push_back({dense, {users, items}});
    }
  }
  return choices;
}

TEST(SplitStrategy, GivesTheBitsOfPlainLoopsInTheOrderOfRanksWhoeverHasWhat) {
  constexpr std::int64_t kSteps = 8;
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    for (const int workers : {1, 2, 4}) {
      for (const ExchangeChoice& choice : all_choices()) {
        const Job job{
            .group = {.workers = workers, .servers = 1 + workers % 3}, .choice = choice, .rule = {.kind = kind}};
        run(job, [&](TableSteps& steps, SplitStrategy&) {
          for (std::int64_t step = 0; step < kSteps; ++step) steps.step(step);
          steps.expect_rows(workers, kSteps, job.rule);
          steps.expect_dense(workers, kSteps, job.rule);
        });
      }
    }
  }
}

// Merges what all have saved, as a checkpoint does: each reads what it has of it.
States for_all(const States& states) {
  TrainingState whole;
  std::int64_t step = 0;  // a server that has nothing is at 0
  for (const TrainingState& each : states) {
    whole.merge(each);
    step = std::max(step, each.step);
  }
  whole.step = step;
  States merged(states.size());
  for (TrainingState& each : merged) each.merge(whole);
  return merged;
}

TEST(SplitStrategy, GoesOnWithTheSameChoiceFromTheStatesOfWorkersAndServers) {
  constexpr std::int64_t kBreak = 5, kSteps = 9;
  for (const ExchangeChoice& choice : all_choices()) {
    Job job{.group = {.workers = 2, .servers = 1}, .choice = choice};
    const States states = run(job, [&](TableSteps& steps, SplitStrategy&) {
      for (std::int64_t step = 0; step < kBreak; ++step) steps.step(step);
    });
    const States merged = for_all(states);
    job.from = &merged;
    run(job, [&](TableSteps& steps, SplitStrategy& strategy) {
      EXPECT_EQ(strategy.first_step(), kBreak);
      for (std::int64_t step = kBreak; step < kSteps; ++step) steps.step(step);
      steps.expect_rows(2, kSteps, job.rule);
      steps.expect_dense(2, kSteps, job.rule);
    });
  }
}

TEST(SplitStrategy, GoesOnFromTheStatesOfWorkersAndServers) {
  constexpr std::int64_t kBreak = 5, kSteps = 9;
  Job job{.group = {.workers = 2, .servers = 2}};
  const States states = run(job, [&](TableSteps& steps, SplitStrategy&) {
    for (std::int64_t step = 0; step < kBreak; ++step) steps.step(step);
  });
  job.from = &states;
  run(job, [&](TableSteps& steps, SplitStrategy& strategy) {
    EXPECT_EQ(strategy.first_step(), kBreak);
    for (std::int64_t step = kBreak; step < kSteps; ++step) steps.step(step);
    steps.expect_rows(2, kSteps, job.rule);
    steps.expect_dense(2, kSteps, job.rule);
  });
}

// A part of a job that goes on with some step, and reports figures.
class Part final : public SyncStrategy {
 public:
  Part(std::int64_t first_step, SyncStats stats) : first_step_(first_step), stats_(stats) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    weights_.resize(layout.size());
    return ParamArenas{.weights = weights_, .gradients = weights_};
  }
  Result<std::vector<Range>> join() override { return std::vector<Range>(); }
  std::int64_t first_step() const override { return first_step_; }
  void begin_step(const StepContext& step) override { EXPECT_LE(step.rows.size(), 1u); }
  void gradient_ready(std::size_t /*bucket*/) override {}
  Result<SyncStats> finish_step() override { return stats_; }
  Status leave() override { return {}; }

 private:
  const std::int64_t first_step_;
  const SyncStats stats_;
  std::vector<float> weights_;
};

SplitStrategy of_parts(std::int64_t dense_step, std::int64_t tables_step, const SyncStats& dense = {},
                       const SyncStats& tables = {}) {
  return {std::make_unique<Part>(dense_step, dense), std::make_unique<Part>(tables_step, tables), choice_by_kind};
}

TEST(SplitStrategy, RefusesPartsThatGoOnWithDifferentSteps) {
  SplitStrategy strategy = of_parts(3, 4);
  ASSERT_TRUE(strategy.allocate(table_layout(kRows)).ok());
  const Status status = strategy.join().status();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_EQ(status.message(), "the dense tensors go on with step 3, the tables with step 4");
  EXPECT_EQ(strategy.resumable(), nullptr);
}

TEST(SplitStrategy, RefusesALayoutThatLacksOnePart) {
  ParamLayout dense, tables;
  dense.add("a", {40});
  tables.add_table("users", 100, 3, {.rows_a_step = 7, .limit = 0.5f});
  for (const ParamLayout& layout : {dense, tables}) {
    EXPECT_EQ(of_parts(0, 0).allocate(layout).status().code(), Code::kInvalidArgument);
  }
}

TEST(SplitStrategy, SumsTheFiguresOfBothParts) {
  using std::chrono::seconds;
  SplitStrategy strategy = of_parts(0, 0,
                                    {.exposed_wait = seconds(1),
                                     .pass_core_wait = seconds(1),
                                     .communication = seconds(7),
                                     .optimizer = seconds(2),
                                     .bytes_out = 10,
                                     .bytes_in = 20},
                                    {.exposed_wait = seconds(4),
                                     .forward_wait = seconds(3),
                                     .pass_core_wait = seconds(2),
                                     .communication = seconds(5),
                                     .bytes_out = 1,
                                     .bytes_in = 2,
                                     .last_shard = 1,
                                     .last_shard_alone = seconds(1)});
  ASSERT_TRUE(strategy.allocate(table_layout(kRows)).ok());
  const Result<SyncStats> stats = strategy.finish_step();
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->exposed_wait, seconds(5));
  EXPECT_EQ(stats->forward_wait, seconds(3));
  EXPECT_EQ(stats->pass_core_wait, seconds(3));
  EXPECT_EQ(stats->communication, seconds(7)) << "both pass at the same time";
  EXPECT_EQ(stats->optimizer, seconds(2));
  EXPECT_EQ(stats->bytes_out, 11);
  EXPECT_EQ(stats->bytes_in, 22);
  EXPECT_EQ(stats->last_shard, 1);
  EXPECT_EQ(stats->last_shard_alone, seconds(1));
}

}  // namespace
}  // namespace syncopate

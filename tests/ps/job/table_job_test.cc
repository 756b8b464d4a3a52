// Workers and shards together, with row-sparse tables, over every wire.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "common/tables/initial_row.h"
#include "common/tables/row_sum.h"
#include "common/tables/row_table.h"
#include "tests/ps/job/ps_job.h"

namespace syncopate::ps {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSeed = 5;

// Two tables, and dense tensors of more than one chunk.
ParamLayout layout_with_tables() {
  ParamLayout layout;
  layout.add_table("user.weight", 5000, 5, {.rows_a_step = 40, .limit = 0.5f});
  layout.add_table("item.weight", 100, 3, {.rows_a_step = 20, .limit = 0.25f});
  layout.add("dense1.weight", {37, 11});
  layout.add("dense1.bias", {37});
  return layout;
}

// The rows of table `table` that worker `rank` touches in step `step`: now more of them, now none.
std::vector<RowKey> keys_of(const ParamLayout& layout, std::size_t table, int rank, std::int64_t step) {
  const TensorSpec& spec = layout.tables()[table];
  Random random(static_cast<std::uint64_t>(step), 100 * (table + 1) + static_cast<std::uint64_t>(rank));
  std::vector<RowKey> keys(random.below(static_cast<std::uint64_t>(spec.table->rows_a_step) + 1));
  for (RowKey& key : keys) key = static_cast<RowKey>(random.below(spec.rows()));
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

struct Rows {
  Rows(const ParamLayout& layout, int rank, std::int64_t step) {
    for (std::size_t table = 0; table < layout.tables().size(); ++table) {
      lists.push_back(keys_of(layout, table, rank, step));
      views.push_back(lists.back());
    }
  }
  std::vector<std::vector<RowKey>> lists;
  std::vector<RowKeys> views;
};

std::span<float> rows_in(std::span<float> arena, const TensorSpec& spec, RowKeys keys) {
  return arena.subspan(spec.range.begin, keys.size() * spec.width());
}

std::span<float> dense_in(std::span<float> arena, const ParamLayout& layout) { return slice(arena, layout.dense()); }

// What synchronous steps of `workers` come to, without any network.
class Reference {
 public:
  Reference(const ParamLayout& layout, const OptimizerConfig& optimizer, int workers)
      : layout_(layout),
        optimizer_(optimizer),
        workers_(workers),
        dense(layout.dense().size()),
        state_(optimizer, layout.dense().size()) {
    make_gradient(1000, 0, dense);
    for (std::size_t i = 0; i < layout.tables().size(); ++i) {
      const TensorSpec& spec = layout.tables()[i];
      tables.emplace_back(RowTableOptions{
          .table = i, .width = spec.width(), .limit = spec.table->limit, .seed = kSeed, .optimizer = optimizer});
    }
  }

  void step(std::int64_t number, float learning_rate) {
    std::vector<std::vector<float>> gradients;
    std::vector<Rows> rows;
    for (int rank = 0; rank < workers_; ++rank) {
      gradients.emplace_back(layout_.size());
      make_gradient(rank, number, gradients.back());
      rows.emplace_back(layout_, rank, number);
    }
    const UpdateStep update{learning_rate, 1.0f / static_cast<float>(workers_), number + 1};
    std::vector<float> sum(dense.size());
    for (int rank = 0; rank < workers_; ++rank) {
      const std::span<float> part = dense_in(gradients[static_cast<std::size_t>(rank)], layout_);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = rank == 0 ? part[i] : sum[i] + part[i];
    }
    Optimizer(optimizer_).apply(dense, sum, state_, 0, update);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const TensorSpec& spec = layout_.tables()[i];
      std::vector<SparseRows> by_rank;
      for (std::size_t rank = 0; rank < rows.size(); ++rank) {
        by_rank.push_back({rows[rank].views[i], rows_in(gradients[rank], spec, rows[rank].views[i])});
      }
      RowSum total(spec.width());
      total.sum(by_rank);
      ASSERT_TRUE(tables[i].update(total.keys(), total.values(), update).ok());
    }
  }

  std::vector<float> read(std::size_t table, RowKeys keys) {
    std::vector<float> values(keys.size() * layout_.tables()[table].width());
    EXPECT_TRUE(tables[table].read(keys, values).ok());
    return values;
  }

 private:
  const ParamLayout& layout_;
  OptimizerConfig optimizer_;
  int workers_;

 public:
  std::vector<float> dense;
  std::vector<RowTable> tables;

 private:
  OptimizerState state_;
};

// A worker that has joined, with what a trainer knows.
struct Replica {
  Replica(PsStrategy& servers, const ParamLayout& form, int number) : strategy(servers), layout(form), rank(number) {
    const Result<ParamArenas> memory = strategy.allocate(layout);
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    arenas = *memory;
    if (rank == 0) make_gradient(1000, 0, dense_in(arenas.weights, layout));
    const Result<std::vector<Range>> joined = strategy.join();
    EXPECT_TRUE(joined.ok()) << joined.status().message();
    buckets = *joined;
  }

  // One step; `forward` sees the weights that it begins with.
  Result<SyncStats> step(
      std::int64_t number, const Rows& rows, double learning_rate, const std::function<void()>& forward = [] {}) {
    strategy.begin_step({.step = number, .learning_rate = learning_rate, .rows = rows.views});
    const Status status = strategy.weights_needed({0, arenas.weights.size()});
    EXPECT_TRUE(status.ok()) << status.message();
    forward();
    make_gradient(rank, number, arenas.gradients);
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) strategy.gradient_ready(bucket);
    return strategy.finish_step();
  }

  PsStrategy& strategy;
  const ParamLayout& layout;
  int rank;
  ParamArenas arenas;
  std::vector<Range> buckets;
};

class TableJobOverEveryWire : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, TableJobOverEveryWire, testing::ValuesIn(testing_support::all_wires()),
                         [](const auto& wire) { return wire.param; });

TEST_P(TableJobOverEveryWire, SyncEqualsOneLocalTableBitByBitInEveryStep) {
  constexpr std::int64_t kSteps = 6;
  const ParamLayout layout = layout_with_tables();
  for (const auto kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    for (int workers = 1; workers <= 4; ++workers) {
      for (int shards = 1; shards <= 3; ++shards) {
        SCOPED_TRACE(fmt::format("{} workers, {} shards", workers, shards));
        const OptimizerConfig optimizer{.kind = kind};
        PsJob job({.group = {.workers = workers, .servers = shards},
                   .consistency = "sync",
                   .optimizer = optimizer,
                   .wire = GetParam(),
                   .chunk_bytes = 1024,
                   .seed = kSeed});
        job.run([&](int rank, PsStrategy& strategy) {
          Reference reference(layout, optimizer, workers);
          Replica replica(strategy, layout, rank);
          for (std::int64_t i = 0; i < kSteps; ++i) {
            const Rows rows(layout, rank, i);
            const auto stats = replica.step(i, rows, 0.1, [&] {
              for (std::size_t table = 0; table < 2; ++table) {
                const std::span<float> room =
                    rows_in(replica.arenas.weights, layout.tables()[table], rows.views[table]);
                EXPECT_TRUE(std::ranges::equal(room, reference.read(table, rows.views[table]))) << table << " " << i;
              }
              EXPECT_TRUE(std::ranges::equal(dense_in(replica.arenas.weights, layout), reference.dense));
            });
            ASSERT_TRUE(stats.ok()) << stats.status().message();
            EXPECT_EQ(stats->staleness_max, 0);
            reference.step(i, 0.1f);
          }
          ASSERT_TRUE(strategy.leave().ok());
          EXPECT_TRUE(std::ranges::equal(dense_in(replica.arenas.weights, layout), reference.dense));
          if (rank != kChief) return;
          for (std::size_t table = 0; table < 2; ++table) {
            const Result<std::vector<RowKey>> keys = strategy.touched_rows(table);
            ASSERT_TRUE(keys.ok()) << keys.status().message();
            EXPECT_EQ(*keys, reference.tables[table].keys());
            std::vector<float> values(keys->size() * layout.tables()[table].width());
            const Status read = strategy.read_rows(table, *keys, values);
            ASSERT_TRUE(read.ok()) << read.message();
            EXPECT_EQ(values, reference.read(table, *keys));
          }
        });
        for (int shard = 0; shard < shards; ++shard) EXPECT_TRUE(job.served(shard).ok());
        EXPECT_EQ(job.total().dropped, 0);
      }
    }
  }
}

// The rows of the chief's own step are in what it reads behind it, and those of nobody's later step.
TEST_P(TableJobOverEveryWire, TheChiefReadsBetweenStepsWhatItsLastStepHasMade) {
  constexpr int kWorkers = 3;
  const ParamLayout layout = layout_with_tables();
  PsJob job({.group = {.workers = kWorkers, .servers = 2}, .consistency = "sync", .wire = GetParam(), .seed = kSeed});
  job.run([&](int rank, PsStrategy& strategy) {
    Reference reference(layout, {.kind = OptimizerKind::kSgd}, kWorkers);
    Replica replica(strategy, layout, rank);
    std::vector<RowKey> all(100);  // more than a step has
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<RowKey>(i);
    for (std::int64_t i = 0; i < 5; ++i) {
      const Result<SyncStats> stats = replica.step(i, Rows(layout, rank, i), 0.1);
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      reference.step(i, 0.1f);
      if (rank != kChief) continue;
      std::vector<float> values(all.size() * 3);
      const Status read = strategy.read_rows(1, all, values);
      ASSERT_TRUE(read.ok()) << read.message();
      EXPECT_EQ(values, reference.read(1, all)) << i;
    }
    ASSERT_TRUE(strategy.leave().ok());
  });
  EXPECT_EQ(job.total().dropped, 0);
}

TEST_P(TableJobOverEveryWire, EveryPushIsInTheFinalRows) {
  constexpr std::int64_t kSteps = 20;
  constexpr int kShards = 2;
  ParamLayout layout;
  layout.add_table("table", 50, 2, {.rows_a_step = 50});
  layout.add("dense", {40});
  for (const char* consistency : {"async", "bounded:1", "sync"}) {
    for (int workers = 1; workers <= 4; ++workers) {
      PsJob job({.group = {.workers = workers, .servers = kShards}, .consistency = consistency, .wire = GetParam()});
      std::atomic<std::int64_t> rows_pushed = 0;
      job.run([&](int rank, PsStrategy& strategy) {
        Replica replica(strategy, layout, rank);
        for (std::int64_t i = 0; i < kSteps; ++i) {
          const Rows rows(layout, rank, i);
          strategy.begin_step({.step = i, .learning_rate = 1.0, .rows = rows.views});
          ASSERT_TRUE(strategy.weights_needed({0, layout.size()}).ok());
          std::fill(replica.arenas.gradients.begin(), replica.arenas.gradients.end(), 1.0f);
          for (std::size_t bucket = 0; bucket < replica.buckets.size(); ++bucket) strategy.gradient_ready(bucket);
          const Result<SyncStats> stats = strategy.finish_step();
          ASSERT_TRUE(stats.ok()) << stats.status().message();
          rows_pushed += static_cast<std::int64_t>(rows.views[0].size());
        }
        ASSERT_TRUE(strategy.leave().ok());
        if (rank != kChief) return;
        std::vector<RowKey> all(50);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<RowKey>(i);
        std::vector<float> values(100);
        ASSERT_TRUE(strategy.read_rows(0, all, values).ok());
        double sum = 0;
        for (const float value : values) sum += static_cast<double>(value);
        const double expected = -2.0 * static_cast<double>(rows_pushed);
        EXPECT_NEAR(sum, std::string(consistency) == "sync" ? expected / workers : expected, 1e-3);
      });
      const ShardCounters total = job.total().shard;
      EXPECT_EQ(total.pushes, kSteps * workers * kShards * 2) << "of a chunk and of a table on each shard";
      EXPECT_EQ(total.rows_pushed, rows_pushed);
      EXPECT_EQ(total.rows_pulled, rows_pushed);
    }
  }
}

TEST(TableJob, SparseEqualsDenseForSgdBitByBit) {
  constexpr int kWorkers = 3;
  const ParamLayout layout = layout_with_tables();
  std::vector<std::vector<float>> dense(2);
  for (std::size_t table = 0; table < 2; ++table) {
    const TensorSpec& spec = layout.tables()[table];
    dense[table].resize(spec.rows() * spec.width());
    for (std::size_t row = 0; row < spec.rows(); ++row) {
      initial_row(kSeed, table, static_cast<RowKey>(row), spec.table->limit,
                  std::span(dense[table]).subspan(row * spec.width(), spec.width()));
    }
  }
  const OptimizerConfig sgd{.kind = OptimizerKind::kSgd};
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::size_t table = 0; table < 2; ++table) {
      const TensorSpec& spec = layout.tables()[table];
      std::vector<float> sum(dense[table].size()), gradient(layout.size());
      for (int rank = 0; rank < kWorkers; ++rank) {
        make_gradient(rank, i, gradient);
        const Rows rows(layout, rank, i);
        const std::span<float> values = rows_in(gradient, spec, rows.views[table]);
        for (std::size_t at = 0; at < values.size(); ++at) {
          sum[rows.views[table][at / spec.width()] * spec.width() + at % spec.width()] += values[at];
        }
      }
      OptimizerState state(sgd, sum.size());
      Optimizer(sgd).apply(dense[table], sum, state, 0, {0.1f, 1.0f / kWorkers, i + 1});
    }
  }
  PsJob job({.group = {.workers = kWorkers, .servers = 3}, .consistency = "sync", .seed = kSeed});
  job.run([&](int rank, PsStrategy& strategy) {
    Replica replica(strategy, layout, rank);
    for (std::int64_t i = 0; i < 8; ++i) ASSERT_TRUE(replica.step(i, Rows(layout, rank, i), 0.1).ok());
    ASSERT_TRUE(strategy.leave().ok());
    for (std::size_t table = 0; table < 2 && rank == kChief; ++table) {
      std::vector<RowKey> keys(layout.tables()[table].rows());
      for (std::size_t row = 0; row < keys.size(); ++row) keys[row] = static_cast<RowKey>(row);
      std::vector<float> values(dense[table].size());
      ASSERT_TRUE(strategy.read_rows(table, keys, values).ok());
      EXPECT_EQ(values, dense[table]);
    }
  });
}

TEST(TableJob, SendsAListOfKeysOnceAndCountsEveryByte) {
  const ParamLayout layout = layout_with_tables();
  const auto dense = static_cast<std::int64_t>(layout.dense().size() * sizeof(float));
  PsJob job({.group = {.workers = 1, .servers = 3}});
  job.run([&](int rank, PsStrategy& strategy) {
    Replica replica(strategy, layout, rank);
    for (std::int64_t i = 0; i < 3 * static_cast<std::int64_t>(kKeyListSlots); ++i) {
      const bool is_first_pass = i < static_cast<std::int64_t>(kKeyListSlots);
      const Rows rows(layout, rank, i % static_cast<std::int64_t>(kKeyListSlots));
      std::int64_t keys = 0, values = 0;
      for (std::size_t table = 0; table < 2; ++table) {
        keys += static_cast<std::int64_t>(rows.views[table].size() * sizeof(RowKey));
        values += static_cast<std::int64_t>(rows.views[table].size() * layout.tables()[table].width() * sizeof(float));
      }
      const Result<SyncStats> stats = replica.step(i, rows, 0.1);
      ASSERT_TRUE(stats.ok());
      EXPECT_EQ(stats->bytes_out, dense + values + (is_first_pass ? keys : 0)) << i;
      EXPECT_EQ(stats->bytes_in, dense + values) << i;
    }
    ASSERT_TRUE(strategy.leave().ok());
  });
}

TEST(TableJob, OverlapsTheNextForwardPassToo) {
  const ParamLayout layout = layout_with_tables();
  const OptimizerConfig sgd{.kind = OptimizerKind::kSgd};
  PsJob job({.group = {.workers = 2, .servers = 2}, .consistency = "sync", .overlap_forward = true, .seed = kSeed});
  job.run([&](int rank, PsStrategy& strategy) {
    Reference reference(layout, sgd, 2);
    Replica replica(strategy, layout, rank);
    for (std::int64_t i = 0; i < 6; ++i) {
      const Rows rows(layout, rank, i);
      ASSERT_TRUE(replica
                      .step(i, rows, 0.1,
                            [&] {
                              const TensorSpec& spec = layout.tables()[0];
                              EXPECT_TRUE(std::ranges::equal(rows_in(replica.arenas.weights, spec, rows.views[0]),
                                                             reference.read(0, rows.views[0])));
                            })
                      .ok());
      reference.step(i, 0.1f);
    }
    ASSERT_TRUE(strategy.weights_needed({0, layout.size()}).ok());
    ASSERT_TRUE(strategy.leave().ok());
  });
}

TEST(TableJob, TheOthersGoOnWithoutAKilledWorker) {
  const ParamLayout layout = layout_with_tables();
  for (const char* consistency : {"async", "bounded:1"}) {
    for (const int lost : {0, 2}) {
      PsJob job({.group = {.workers = 3, .servers = 2}, .consistency = consistency});
      job.run([&](int rank, PsStrategy& strategy) {
        Replica replica(strategy, layout, rank);
        const std::int64_t steps = rank == lost ? 2 : 10;
        for (std::int64_t i = 0; i < steps; ++i) {
          const Result<SyncStats> stats = replica.step(i, Rows(layout, rank, i), 0.1);
          ASSERT_TRUE(stats.ok()) << stats.status().message();
        }
        if (rank == lost) return job.lose(rank);
        const Status left = strategy.leave();
        ASSERT_TRUE(left.ok()) << left.message();
        // Who takes the chief's place reads in its place.
        if (rank != 1) return;
        const Result<std::vector<RowKey>> keys = strategy.touched_rows(0);
        ASSERT_TRUE(keys.ok()) << keys.status().message();
        std::vector<float> values(keys->size() * layout.tables()[0].width());
        EXPECT_TRUE(strategy.read_rows(0, *keys, values).ok());
        EXPECT_GT(keys->size(), 40u);
      });
      for (int shard = 0; shard < 2; ++shard) EXPECT_TRUE(job.served(shard).ok());
      EXPECT_EQ(job.total().shard.workers_lost, 2);
    }
  }
}

TEST(TableJob, NamesTheShardThatDoesNotAnswerAPull) {
  const ParamLayout layout = layout_with_tables();
  PsJob job({.group = {.workers = 2, .servers = 1}, .consistency = "sync", .worker_timeout = std::chrono::seconds(1)});
  std::promise<void> failed;
  job.run([&](int rank, PsStrategy& strategy) {
    Replica replica(strategy, layout, rank);
    const Rows rows(layout, rank, 0);
    if (rank == 1) {
      failed.get_future().wait();
      return job.lose(1);
    }
    strategy.begin_step({.step = 0, .learning_rate = 1, .rows = rows.views});
    ASSERT_TRUE(strategy.weights_needed({0, layout.size()}).ok());
    for (const std::size_t behind : {2u, 1u}) strategy.gradient_ready(replica.buckets.size() - behind);
    strategy.begin_step({.step = 1, .learning_rate = 1, .rows = rows.views});
    EXPECT_THAT(strategy.weights_needed({0, layout.size()}).message(), HasSubstr("shard 0 (server 0)"));
    failed.set_value();
    job.lose(0);
  });
}

TEST(TableJob, FailsWhereGradientsOfRowsArePushedThatHaveNotCome) {
  const ParamLayout layout = layout_with_tables();
  PsJob job({.group = {.workers = 1, .servers = 1}});
  job.run([&](int rank, PsStrategy& strategy) {
    Replica replica(strategy, layout, rank);
    const Rows rows(layout, rank, 0);
    strategy.begin_step({.step = 0, .learning_rate = 1, .rows = rows.views});
    for (std::size_t bucket = 0; bucket < replica.buckets.size(); ++bucket) strategy.gradient_ready(bucket);
    EXPECT_THAT(strategy.finish_step().status().message(), HasSubstr("rows that have not come"));
    job.lose(0);
  });
}

TEST(TableJob, RefusesRowsThatDoNotFitTheLayout) {
  const ParamLayout layout = layout_with_tables();
  PsJob job({.group = {.workers = 1, .servers = 1}});
  job.run([&](int rank, PsStrategy& strategy) {
    const Replica replica(strategy, layout, rank);
    strategy.begin_step({.step = 0, .learning_rate = 1});
    EXPECT_THAT(strategy.weights_needed({0, 1}).message(), HasSubstr("rows of 0 tables, where the layout has 2"));
    std::vector<RowKey> many(41);
    const std::vector<RowKeys> rows{many, {}};
    strategy.begin_step({.step = 0, .learning_rate = 1, .rows = rows});
    EXPECT_THAT(strategy.weights_needed({0, 1}).message(), HasSubstr("41 rows of table 0: at most 40"));
    std::vector<float> values(5);
    EXPECT_THAT(strategy.read_rows(2, std::vector<RowKey>{1}, values).message(), HasSubstr("rows of table 2 of 2"));
    job.lose(0);
  });
}

TEST(TableJob, TellsEveryWorkerWhyTheServersRefuseTables) {
  PsJob job({.group = {.workers = 2, .servers = 1}, .consistency = "softsync:1"});
  const ParamLayout layout = layout_with_tables();
  job.run([&](int, PsStrategy& strategy) {
    ASSERT_TRUE(strategy.allocate(layout).ok());
    EXPECT_THAT(strategy.join().status().message(), HasSubstr("row-sparse tables are served under sync, "));
  });
  EXPECT_EQ(job.served(0).code(), Code::kInvalidArgument);
}

TEST(TableJob, RefusesAPipelineAndAnotherOrderOfPushes) {
  const ParamLayout layout = layout_with_tables();
  const auto endpoints = testing_support::connect_group("inproc", 2);
  const SteadyClock clock;
  PsStrategy pipeline({.group = {}, .sharding = {}, .pipeline_depth = 1}, *endpoints[0], clock, nullptr);
  EXPECT_THAT(pipeline.allocate(layout).status().message(), HasSubstr("without a pipeline"));
  PsStrategy priority({.group = {}, .sharding = {}, .push_order = PushOrder::kPriority}, *endpoints[0], clock, nullptr);
  EXPECT_THAT(priority.allocate(layout).status().message(), HasSubstr("in the order of backward"));
}

}  // namespace
}  // namespace syncopate::ps

// AllReduceStrategy with row-sparse tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "allreduce/strategy/bucket_search.h"
#include "allreduce/strategy/model_averaging_strategy.h"
#include "common/random.h"
#include "common/tables/row_table.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"

namespace syncopate::allreduce {
namespace {

using testing::ElementsAreArray;
using testing_support::run_ranks;

constexpr std::size_t kWidths[] = {5, 1};
constexpr std::size_t kMostRows = 12;  // of a step
constexpr std::uint64_t kSeed = 21;

ParamLayout layout_with(std::int64_t rows) {
  ParamLayout layout;
  layout.add_table("users", rows, 5, {.rows_a_step = kMostRows, .limit = 0.5f});
  layout.add_table("items", rows, 1, {.rows_a_step = kMostRows, .limit = 0.25f});
  layout.add("dense", {40});
  return layout;
}

// What rank `rank` touches in a step, and its gradients: of very different sizes, so that sums depend on their order.
struct Touched {
  std::vector<RowKey> keys;
  std::vector<float> gradients;
};
Touched touched_by(int rank, std::int64_t step, std::size_t table, std::size_t rows) {
  Random random(static_cast<std::uint64_t>(1000 * step + 10 * rank) + table);
  std::map<RowKey, int> drawn;
  const std::uint64_t count = random.below(kMostRows + 1);
  for (std::uint64_t i = 0; i < count; ++i) drawn[static_cast<RowKey>(random.below(rows))] = 1;
  Touched touched;
  for (const auto& [key, once] : drawn) {
    touched.keys.push_back(key);
    for (std::size_t i = 0; i < kWidths[table]; ++i) {
      const float value = static_cast<float>(random.below(1000)) - 500.0f;
      touched.gradients.push_back(value * (random.below(2) == 0 ? 0x1p-12f : 0x1p12f));
    }
  }
  return touched;
}

// The rows of one table after so many steps of so many ranks, by plain loops over the ranks.
RowTable expected_rows(int ranks, std::int64_t steps, std::size_t table, std::size_t rows,
                       const OptimizerConfig& rule) {
  const std::size_t width = kWidths[table];
  RowTable expected(
      {.table = table, .width = width, .limit = table == 0 ? 0.5f : 0.25f, .seed = kSeed, .optimizer = rule});
  for (std::int64_t step = 0; step < steps; ++step) {
    std::map<RowKey, std::vector<float>> sums;
    for (int rank = 0; rank < ranks; ++rank) {
      const Touched touched = touched_by(rank, step, table, rows);
      for (std::size_t k = 0; k < touched.keys.size(); ++k) {
        std::vector<float>& sum = sums.try_emplace(touched.keys[k], width).first->second;
        for (std::size_t i = 0; i < width; ++i) sum[i] += touched.gradients[k * width + i];
      }
    }
    const UpdateStep update{0.01f, 1.0f / static_cast<float>(ranks), step + 1};
    for (const auto& [key, sum] : sums) EXPECT_TRUE(expected.update(std::vector{key}, sum, update).ok());
  }
  return expected;
}

std::vector<float> peek(const RowTable& table, RowKeys keys, std::size_t width) {
  std::vector<float> values(keys.size() * width);
  table.peek(keys, values);
  return values;
}

class Tables {
 public:
  Tables(SyncStrategy& strategy, int rank, std::int64_t rows)
      : strategy_(strategy), rank_(rank), rows_(static_cast<std::size_t>(rows)), layout_(layout_with(rows)) {
    arenas_ = *strategy_.allocate(layout_);
    if (rank_ == 0) std::ranges::fill(slice(arenas_.weights, layout_.dense()), 3.0f);
    const Result<std::vector<Range>> buckets = strategy_.join();
    EXPECT_TRUE(buckets.ok()) << buckets.status().message();
    EXPECT_EQ(buckets->size(), 3u);
  }

  void step(std::int64_t number) {
    const Touched touched[] = {touched_by(rank_, number, 0, rows_), touched_by(rank_, number, 1, rows_)};
    const std::vector<RowKeys> rows{touched[0].keys, touched[1].keys};
    strategy_.begin_step({.step = number, .learning_rate = 0.01, .rows = rows});
    for (std::size_t table : {0u, 1u}) {
      const Range room = layout_.tables()[table].room_of(rows[table].size());
      ASSERT_TRUE(strategy_.weights_needed(layout_.tables()[table].range).ok());
      EXPECT_THAT(slice(arenas_.weights, room), ElementsAreArray(read(table, rows[table])));
    }
    std::ranges::fill(slice(arenas_.gradients, layout_.dense()), 1.0f);
    strategy_.gradient_ready(0);
    for (std::size_t table : {1u, 0u}) {
      const Range room = layout_.tables()[table].room_of(rows[table].size());
      std::ranges::copy(touched[table].gradients, slice(arenas_.gradients, room).begin());
      strategy_.gradient_ready(2 - table);
    }
    const Result<SyncStats> stats = strategy_.finish_step();
    ASSERT_TRUE(stats.ok()) << stats.status().message();
  }

  std::vector<float> read(std::size_t table, RowKeys keys) {
    std::vector<float> values(keys.size() * kWidths[table]);
    EXPECT_TRUE(strategy_.table_reader()->read_rows(table, keys, values).ok());
    return values;
  }
  void expect_rows(int ranks, std::int64_t steps, const OptimizerConfig& rule) {
    for (std::size_t table : {0u, 1u}) {
      const RowTable expected = expected_rows(ranks, steps, table, rows_, rule);
      const std::vector<RowKey> keys = expected.keys();
      EXPECT_THAT(*strategy_.table_reader()->touched_rows(table), ElementsAreArray(keys));
      EXPECT_THAT(read(table, keys), ElementsAreArray(peek(expected, keys, kWidths[table])));
    }
  }
  float dense_weight() const { return slice(arenas_.weights, layout_.dense()).back(); }

 private:
  SyncStrategy& strategy_;
  const int rank_;
  const std::size_t rows_;
  const ParamLayout layout_;
  ParamArenas arenas_;
};

// Runs body(collective) on every rank of a group that sums in the order of ranks.
void with_collective(const std::string& wire, int size, const std::function<void(Collective&)>& body) {
  if (wire == "direct") {
    const std::vector<std::unique_ptr<Collective>> group = testing_support::connect_direct(size);
    return run_ranks(size, [&](int rank) { body(*group[static_cast<std::size_t>(rank)]); });
  }
  const auto wires = testing_support::connect_group(wire, size);
  run_ranks(size, [&](int rank) {
    body(*make_schedule_collective(*wires[static_cast<std::size_t>(rank)], {.kind = ScheduleKind::kDirect}));
  });
}

class AllReduceTables : public testing::TestWithParam<std::tuple<std::string, SparseExchange>> {};

INSTANTIATE_TEST_SUITE_P(Way, AllReduceTables,
                         testing::Combine(testing::Values("direct", "shm", "sockets"),
                                          testing::Values(SparseExchange::kRows, SparseExchange::kDense)),
                         [](const auto& tested) {
                           const bool rows = std::get<1>(tested.param) == SparseExchange::kRows;
                           return std::get<0>(tested.param) + (rows ? "Rows" : "Dense");
                         });

TEST_P(AllReduceTables, GiveTheBitsOfPlainLoopsInTheOrderOfRanks) {
  constexpr std::int64_t kSteps = 12;
  const auto& [wire, exchange] = GetParam();
  for (const OptimizerConfig& rule : {OptimizerConfig{.kind = OptimizerKind::kSgd, .weight_decay = 0.01f},
                                      OptimizerConfig{.kind = OptimizerKind::kAdam}}) {
    for (int size = 1; size <= 4; ++size) {
      with_collective(wire, size, [&](Collective& collective) {
        const SteadyClock clock;
        const auto strategy =
            make_allreduce_strategy(collective, {.optimizer = rule, .seed = kSeed, .sparse_exchange = exchange}, clock);
        Tables tables(*strategy, collective.rank(), 40);
        for (std::int64_t step = 0; step < kSteps; ++step) tables.step(step);
        tables.expect_rows(size, kSteps, rule);
        if (rule.kind == OptimizerKind::kAdam) {
          EXPECT_NEAR(tables.dense_weight(), 3 - 0.01 * kSteps, 1e-4);
        }
        EXPECT_TRUE(strategy->leave().ok());
      });
    }
  }
}

TEST(SparseExchangeSearch, SettlesOnOneWayForAllRanksAndChangesNoSum) {
  constexpr int kRanks = 3;
  std::vector<std::string> findings(kRanks);
  const OptimizerConfig rule{.kind = OptimizerKind::kSgd};
  with_collective("direct", kRanks, [&](Collective& collective) {
    const SteadyClock clock;
    AllReduceOptions options{.optimizer = rule, .bucket_bytes = 0, .seed = kSeed};
    std::string& told = findings[static_cast<std::size_t>(collective.rank())];
    options.on_exchange_found = [&](const std::string& finding) { told = finding; };
    const auto strategy = make_allreduce_strategy(collective, options, clock);
    Tables tables(*strategy, collective.rank(), 40);
    const int searching = BucketSearch(2).steps();
    for (int step = 0; step < searching + 5; ++step) {
      EXPECT_EQ(told.empty(), step < searching) << step;
      tables.step(step);
    }
    tables.expect_rows(kRanks, searching + 5, rule);
    EXPECT_TRUE(strategy->leave().ok());
  });
  EXPECT_THAT(findings[0], testing::MatchesRegex("users (rows|dense) .* ms, (rows|dense) .* ms; items .*"));
  for (const std::string& finding : findings) EXPECT_EQ(finding, findings[0]);
}

TEST(SparseExchangeSearch, NeverTriesATableDenselyThatIsFarTooLarge) {
  constexpr int kRanks = 2;
  const OptimizerConfig rule{.kind = OptimizerKind::kSgd};
  constexpr std::int64_t kRows = std::int64_t{1} << 32;  // dense, 100 GB
  with_collective("direct", kRanks, [&](Collective& collective) {
    const SteadyClock clock;
    std::string told;
    AllReduceOptions options{.optimizer = rule, .seed = kSeed};
    options.on_exchange_found = [&](const std::string& finding) { told = finding; };
    const auto strategy = make_allreduce_strategy(collective, options, clock);
    Tables tables(*strategy, collective.rank(), kRows);
    for (int step = 0; step < 50; ++step) tables.step(step);
    tables.expect_rows(kRanks, 50, rule);
    EXPECT_EQ(told, "users rows, too large for dense; items rows, too large for dense");
  });
}

TEST(SparseExchangeSearch, SaysWhereARunWasTooShort) {
  with_collective("direct", 2, [&](Collective& collective) {
    const SteadyClock clock;
    std::string told;
    AllReduceOptions options;
    options.on_exchange_found = [&](const std::string& finding) { told = finding; };
    const auto strategy = make_allreduce_strategy(collective, options, clock);
    Tables tables(*strategy, collective.rank(), 40);
    tables.step(0);
    EXPECT_TRUE(strategy->leave().ok());
    EXPECT_EQ(told, "not found: a search takes 37 steps");
  });
}

TEST(ModelAveraging, RefusesTables) {
  with_collective("direct", 1, [&](Collective& collective) {
    const SteadyClock clock;
    ModelAveragingStrategy strategy(collective, {}, clock);
    const Status status = strategy.allocate(layout_with(40)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), "this strategy has no row-sparse tables");
  });
}

}  // namespace
}  // namespace syncopate::allreduce

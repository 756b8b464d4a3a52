// AllReduceStrategy with row-sparse tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "allreduce/strategy/bucket_search.h"
#include "allreduce/strategy/model_averaging_strategy.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "tests/support/table_steps.h"

namespace syncopate::allreduce {
namespace {

using testing_support::run_ranks;
using testing_support::table_layout;
using testing_support::TableSteps;

constexpr std::uint64_t kSeed = TableSteps::kSeed;

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
        TableSteps tables(*strategy, collective.rank(), 40);
        for (std::int64_t step = 0; step < kSteps; ++step) tables.step(step);
        tables.expect_rows(size, kSteps, rule);
        tables.expect_dense(size, kSteps, rule);
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
    TableSteps tables(*strategy, collective.rank(), 40);
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
    TableSteps tables(*strategy, collective.rank(), kRows);
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
    TableSteps tables(*strategy, collective.rank(), 40);
    tables.step(0);
    EXPECT_TRUE(strategy->leave().ok());
    EXPECT_EQ(told, "not found: a search takes 37 steps");
  });
}

TEST(ModelAveraging, RefusesTables) {
  with_collective("direct", 1, [&](Collective& collective) {
    const SteadyClock clock;
    ModelAveragingStrategy strategy(collective, {}, clock);
    const Status status = strategy.allocate(table_layout(40)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), "this strategy has no row-sparse tables");
  });
}

}  // namespace
}  // namespace syncopate::allreduce

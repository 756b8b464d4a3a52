// Which exchange takes which tensor: the seconds of a step by the header's table, and what follows from them.
#include "common/tables/exchange_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

constexpr double kByte = 1e-8;  // seconds

// n workers and as many servers, on the workers' hosts or on their own.
ExchangeGround ground_of(int workers, bool apart, double latency = 0) {
  ExchangeGround ground{.hosts = {}, .seconds_per_byte = kByte, .latency = latency};
  ground.hosts.assign(static_cast<std::size_t>(workers), {.workers = 1, .servers = apart ? 0 : 1});
  for (int server = 0; apart && server < workers; ++server) ground.hosts.push_back({.workers = 0, .servers = 1});
  return ground;
}

constexpr double kTouched = 1000, kWide = 16;
constexpr double kR = 4 * kTouched * kWide, kK = 4 * kTouched;  // bytes of rows and of keys
constexpr double kFew = kR / 10, kMany = 10 * kR;               // bytes of dense tensors

ExchangeDemand demand_of(double dense_bytes, std::vector<ExchangeDemand::Table> tables = {{kTouched, kWide, 1e6}}) {
  return {.dense_bytes = dense_bytes, .tables = std::move(tables)};
}

const ExchangeChoice kAllWorkers{.dense_by_servers = false, .tables_by_servers = {false}};
const ExchangeChoice kAllServers{.dense_by_servers = true, .tables_by_servers = {true}};
const ExchangeChoice kByKind{.dense_by_servers = false, .tables_by_servers = {true}};
const ExchangeChoice kCrosswise{.dense_by_servers = true, .tables_by_servers = {false}};

TEST(ExchangeChoice, CostsWhatTheBusiestLinkCarries) {
  for (const int n : {2, 4, 8}) {
    const double others = (n - 1) / static_cast<double>(n);
    const auto bytes = [&](const ExchangeChoice& choice, bool apart) {
      return exchange_seconds(ground_of(n, apart), demand_of(kMany), choice) / kByte;
    };
    for (const bool apart : {false, true}) {
      EXPECT_NEAR(bytes(kAllWorkers, apart), 2 * kMany * others + (n - 1) * (kR + kK), 1e-3) << n;
    }
    // In the workers' hosts an n-th of what goes to servers stays inside, and both ways meet on one link.
    EXPECT_NEAR(bytes(kByKind, false), 2 * kMany * others + 2 * kR * others + kK * others, 1e-3) << n;
    EXPECT_NEAR(bytes(kAllServers, false), 2 * kMany * others + 2 * kR * others + kK * others, 1e-3) << n;
    EXPECT_NEAR(bytes(kByKind, true), 2 * kMany * others + 2 * kR + kK, 1e-3) << n;
    EXPECT_NEAR(bytes(kAllServers, true), 2 * kMany + kR + kK, 1e-3) << n << ": answers come behind the push";
    EXPECT_NEAR(bytes(kCrosswise, true), std::max(2 * kMany, kMany + (n - 1) * (kR + kK)), 1e-3) << n;
  }
}

TEST(ExchangeChoice, AnswersAWindowBehindThePush) {
  const double large = 100 * kPushWindowBytes;
  EXPECT_NEAR(exchange_seconds(ground_of(4, true), demand_of(large), kAllServers) / kByte,
              large + std::max(kR, 4 * kPushWindowBytes) + kR + kK, 1);
}

TEST(ExchangeChoice, CountsMessagesThatWaitForEachOther) {
  const auto delays = [](const ExchangeChoice& choice) {
    return exchange_seconds(ground_of(8, false, 1), demand_of(0, {{0, 1, 100}}), choice);
  };
  EXPECT_EQ(delays(kAllWorkers), 2 * 3 + 1);  // there and back through three levels, and an all_to_all
  EXPECT_EQ(delays(kByKind), 2 * 3 + 2);      // and a pull
  EXPECT_EQ(delays(kAllServers), 2 + 2);
}

TEST(ExchangeChoice, SumsASmallTableAsAWhole) {
  const ExchangeDemand small = demand_of(0, {{kTouched, kWide, 1.5 * kTouched}});
  ExchangeGround ground = ground_of(4, false);
  EXPECT_NEAR(exchange_seconds(ground, small, kAllWorkers) / kByte, 2 * 0.75 * 4 * 1.5 * kTouched * (kWide + 1), 1e-3);
  ground.sums_whole_tables = false;
  EXPECT_NEAR(exchange_seconds(ground, small, kAllWorkers) / kByte, 3 * (kR + kK), 1e-3);
}

TEST(ExchangeChoice, LeavesOutWhatStaysInsideAHost) {
  const ExchangeGround one_host{.hosts = {{.workers = 3, .servers = 2}}, .seconds_per_byte = kByte};
  for (const ExchangeChoice& choice : {kAllWorkers, kAllServers, kByKind, kCrosswise}) {
    EXPECT_EQ(exchange_seconds(one_host, demand_of(kMany), choice), 0);
  }
  // Two workers a host: a ring passes each host once, and rows of either go to the two of the other.
  const ExchangeGround pairs{.hosts = {{.workers = 2}, {.workers = 2}, {.workers = 0, .servers = 1}},
                             .seconds_per_byte = kByte};
  EXPECT_NEAR(exchange_seconds(pairs, demand_of(kMany), kAllWorkers) / kByte, 2 * 0.75 * kMany + 4 * (kR + kK), 1e-3);
  EXPECT_NEAR(exchange_seconds(pairs, demand_of(kMany), kByKind) / kByte,
              std::max(2 * 0.75 * kMany + 2 * kR, 4 * kR) + 4 * kK + 4 * kR, 1e-3)
      << "the server has the rows of four workers on its link";
}

TEST(ExchangeChoice, SumsAmongTwoWorkersAndServesRowsOfMore) {
  for (const double dense : {kFew, kMany}) {
    EXPECT_EQ(choose_exchanges(ground_of(2, false), demand_of(dense)), kAllWorkers);
    EXPECT_EQ(choose_exchanges(ground_of(2, true), demand_of(dense)), kAllWorkers);
    EXPECT_EQ(choose_exchanges(ground_of(8, false), demand_of(dense)), kByKind);
  }
  // Apart, servers take D each way at once, where rows fill the time until they answer.
  EXPECT_EQ(choose_exchanges(ground_of(8, true), demand_of(kR)), kAllServers);
  EXPECT_EQ(choose_exchanges(ground_of(8, true), demand_of(kMany)), kByKind);
}

TEST(ExchangeChoice, IsMadeForEachTable) {
  const ExchangeDemand demand = demand_of(kR, {{kTouched, kWide, 1e6}, {100, kWide, 100}, {kTouched, kWide, 1e6}});
  EXPECT_THAT(choose_exchanges(ground_of(8, true), demand).tables_by_servers, testing::ElementsAre(true, false, true));
}

TEST(ExchangeChoice, TakesServersOnlyWhereTheyWinByAMargin) {
  // Rows by servers take 2 R (n-1)/n + K (n-1)/n in place of (n-1) (R + K): dense bytes make that more or less of all.
  const ExchangeGround ground = ground_of(4, false);
  const double saved = 3 * (kR + kK) - 0.75 * (2 * kR + kK);
  const double rest = 3 * (kR + kK);
  const double dense = (saved / kServersMargin - rest) / 1.5;  // the part saved is the margin
  EXPECT_EQ(choose_exchanges(ground, demand_of(0.99 * dense)), kByKind);
  EXPECT_EQ(choose_exchanges(ground, demand_of(1.01 * dense)), kAllWorkers);
}

TEST(ExchangeChoice, SaysWhoHasWhatAndWhatThatTakes) {
  ParamLayout layout;
  layout.add_table("users", 1000, 3, {.rows_a_step = 7, .limit = 0.5f});
  layout.add_table("items", 10, 16, {.rows_a_step = 2, .limit = 0.5f});
  layout.add("a", {4, 8});
  EXPECT_EQ(choice_by_kind(layout), (ExchangeChoice{.dense_by_servers = false, .tables_by_servers = {true, true}}));
  const ExchangeDemand demand = syncopate::demand_of(layout, {});
  EXPECT_EQ(demand.dense_bytes, 4 * 32);
  ASSERT_EQ(demand.tables.size(), 2u);
  EXPECT_EQ(demand.tables[0].rows, 7);
  EXPECT_EQ(demand.tables[0].all_rows, 1000);
  EXPECT_EQ(demand.tables[1].width, 16);
  EXPECT_EQ(syncopate::demand_of(layout, {2.5, 1}).tables[0].rows, 2.5);
  EXPECT_EQ(describe({.dense_by_servers = false, .tables_by_servers = {true, false}}, layout,
                     {.hosts = {{.workers = 2, .servers = 1}}, .seconds_per_byte = 1}, demand),
            "dense by workers; users by servers; items by workers (0 ms a step; all by workers 0 ms, all by servers 0 "
            "ms)");
}

}  // namespace
}  // namespace syncopate

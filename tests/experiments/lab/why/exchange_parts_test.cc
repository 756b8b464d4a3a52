#include "experiments/lab/why/exchange_parts.h"

#include <gtest/gtest.h>

#include "tests/experiments/lab/why/planted_steps.h"

namespace syncopate::experiments {
namespace {

double sum_of(const ExchangeParts& parts) {
  return parts.hot_shard + parts.slow_server + parts.link + parts.incast + parts.servers + parts.cores + parts.delay +
         parts.unexplained;
}

// One round of all workers, whose bytes each server received and sent.
RunPace servers_with(const std::vector<std::int64_t>& bytes) {
  RunPace pace{.workers = 4, .quorum = 4, .servers = static_cast<int>(bytes.size())};
  for (std::size_t server = 0; server < bytes.size(); ++server) {
    pace.of_servers[static_cast<int>(server)] = {.bytes_in = bytes[server], .bytes_out = bytes[server]};
  }
  return pace;
}

TEST(ExchangeParts, AreUnexplainedWhereNothingIsRecorded) {
  const ExchangeParts parts = divide_exchange({.exposed_ms = 10, .bytes_out = 1e6, .rounds = 1}, {.workers = 2});
  EXPECT_NEAR(parts.unexplained, 10, kExact);
}

TEST(ExchangeParts, AreTheLinksAsFarAsItsBytesNeedIt) {
  RunPace pace{.workers = 4, .link = PacedLink{.bytes_per_second = 1e8}};
  const ExchangeFigures figures{.exposed_ms = 10, .bytes_out = 6e5, .bytes_in = 6e5, .rounds = 1};
  const ExchangeParts parts = divide_exchange(figures, pace);
  EXPECT_NEAR(parts.link, 6, kExact) << "both ways at once";
  EXPECT_NEAR(parts.unexplained, 4, kExact);
}

TEST(ExchangeParts, DivideWhatIsExposedInProportionToWhatIsNeeded) {
  RunPace pace{.workers = 4, .link = PacedLink{.bytes_per_second = 1e8, .delay_ms = 1}, .delays_a_step = 2};
  const ExchangeFigures figures{.exposed_ms = 4, .communication_ms = 8, .bytes_out = 6e5, .bytes_in = 6e5, .rounds = 1};
  const ExchangeParts parts = divide_exchange(figures, pace);
  EXPECT_NEAR(parts.link, 3, kExact);
  EXPECT_NEAR(parts.delay, 1, kExact);
  EXPECT_NEAR(parts.unexplained, 0, kExact);
}

// Where bytes take 6 of an exchange's 6.5 ms, a thousand delays cannot have taken more than the rest.
TEST(ExchangeParts, AreDelaysAsFarAsTheLinksLeaveRoom) {
  RunPace pace{.workers = 4, .link = PacedLink{.bytes_per_second = 1e8, .delay_ms = 1}, .delays_a_step = 1000};
  const ExchangeFigures figures{
      .exposed_ms = 6.5, .communication_ms = 6.5, .bytes_out = 6e5, .bytes_in = 6e5, .rounds = 1};
  const ExchangeParts parts = divide_exchange(figures, pace);
  EXPECT_NEAR(parts.link, 6, kExact);
  EXPECT_NEAR(parts.delay, 0.5, kExact);
}

// Four workers' bytes at one server: a quarter of what its link needs is what a worker's needs itself.
TEST(ExchangeParts, AreIncastWhereWorkersMeetAtAServersLink) {
  RunPace pace = servers_with({4000000});
  pace.link = PacedLink{.bytes_per_second = 1e8};
  const ExchangeParts parts = divide_exchange({.exposed_ms = 80, .bytes_out = 1e6, .bytes_in = 1e6, .rounds = 1}, pace);
  EXPECT_NEAR(parts.link, 20, kExact) << "10 ms out, then 10 ms in";
  EXPECT_NEAR(parts.incast, 60, kExact);
  EXPECT_FALSE(parts.hot_server.has_value());
}

TEST(ExchangeParts, AreAHotShardsBeyondWhatEvenServersNeed) {
  RunPace pace = servers_with({6000000, 1000000, 1000000});
  pace.link = PacedLink{.bytes_per_second = 1e8};
  const ExchangeParts parts = divide_exchange({.exposed_ms = 90, .bytes_out = 2e6, .bytes_in = 2e6, .rounds = 1}, pace);
  EXPECT_EQ(parts.hot_server, 0);
  EXPECT_NEAR(parts.hottest_over_mean, 6 / (8.0 / 3), kExact);
  // 120 ms of its link come down to 53.3.
  EXPECT_NEAR(parts.hot_shard, 90 * (1 - 53.0 / 120 - 1.0 / 360), 1e-6);
  EXPECT_NEAR(sum_of(parts), 90, kExact);
}

// As spare servers have more than colocated ones.
TEST(ExchangeParts, AreNoHotShardsWhereAServerHasTheMoreThatItIsToHave) {
  RunPace pace = servers_with({1000000, 1000000, 2000000});
  pace.server_parts = {0.25, 0.25, 0.5};
  const ExchangeFigures figures{.exposed_ms = 90, .bytes_out = 2e6, .bytes_in = 2e6, .rounds = 1};
  EXPECT_NEAR(divide_exchange(figures, pace).hot_shard, 0, kExact);
  EXPECT_NEAR(divide_exchange(figures, pace).hottest_over_mean, 1, kExact);
  pace.server_parts = {0.1, 0.4, 0.5};
  EXPECT_EQ(divide_exchange(figures, pace).hot_server, 0);
  EXPECT_NEAR(divide_exchange(figures, pace).hottest_over_mean, 2.5, kExact);
}

// 30 of 60 ms each way are hidden behind computing, which would be enough for 26.7.
TEST(ExchangeParts, AreAHotShardsAloneWhereEvenServersWouldBeHidden) {
  RunPace pace = servers_with({6000000, 1000000, 1000000});
  pace.link = PacedLink{.bytes_per_second = 1e8};
  const ExchangeParts parts = divide_exchange({.exposed_ms = 30, .bytes_out = 2e6, .bytes_in = 2e6, .rounds = 1}, pace);
  EXPECT_NEAR(parts.hot_shard, 30, kExact);
}

TEST(ExchangeParts, AreNoHotShardsWhereTheWorkersOwnLinksAreFuller) {
  RunPace pace = servers_with({1500000, 500000});
  pace.workers = 1;
  pace.link = PacedLink{.bytes_per_second = 1e8};
  const ExchangeParts parts = divide_exchange({.exposed_ms = 40, .bytes_out = 2e6, .bytes_in = 2e6, .rounds = 1}, pace);
  EXPECT_NEAR(parts.hot_shard, 0, kExact);
  EXPECT_NEAR(parts.link, 40, kExact);
}

TEST(ExchangeParts, AreASlowServersBeyondWhatItsLinkExplains) {
  RunPace pace = servers_with({1000000, 1000000});
  pace.link = PacedLink{.bytes_per_second = 1e9, .delay_ms = 0.5};
  const ExchangeParts parts = divide_exchange(
      {.exposed_ms = 20, .communication_ms = 20, .bytes_out = 5e5, .bytes_in = 5e5, .rounds = 1, .alone_ms = {0, 17}},
      pace);
  EXPECT_EQ(parts.slowest_server, 1);
  EXPECT_NEAR(parts.slow_server, 17 - 2 - 1, kExact) << "its link needs 2 ms, and delays 1 ms";
  EXPECT_NEAR(sum_of(parts), 20, kExact);
}

// Each of two equal servers may be alone for half of the exchange: the second one is, since its chunks are pushed last.
TEST(ExchangeParts, TakeTheLastOfEqualServersForNoSlowOne) {
  const RunPace pace = servers_with({1000000, 1000000});
  ExchangeFigures figures{.exposed_ms = 20, .communication_ms = 20, .rounds = 1, .alone_ms = {10, 0}};
  EXPECT_FALSE(divide_exchange(figures, pace).slowest_server.has_value());
  // With 12 ms of its own, 20 + 12 are under way.
  figures = {.exposed_ms = 32, .communication_ms = 32, .rounds = 1, .alone_ms = {22, 0}};
  EXPECT_EQ(divide_exchange(figures, pace).slowest_server, 0);
  EXPECT_NEAR(divide_exchange(figures, pace).slow_server, 12, kExact);
}

TEST(ExchangeParts, AreTheServersWhereTheyAreBusy) {
  RunPace pace = servers_with({1000000, 1000000});
  for (auto& [rank, server] : pace.of_servers) {
    server.busy = std::chrono::milliseconds(80);
    server.core_wait = std::chrono::milliseconds(20);
  }
  const ExchangeParts parts = divide_exchange({.exposed_ms = 12, .rounds = 10}, pace);
  EXPECT_NEAR(parts.servers, 8, kExact);
  EXPECT_NEAR(parts.cores, 2, kExact);
  EXPECT_NEAR(parts.unexplained, 2, kExact);
}

// Pushes and answers of a worker and a server cross their host's link side by side.
TEST(ExchangeParts, CountAHostsLinkForAllOfItsProcesses) {
  RunPace pace{.workers = 8, .servers = 8, .link = PacedLink{.bytes_per_second = 1e6}};
  pace.host_link = RunPace::HostLink{.of_workers = 0.5, .of_servers = 0.25};
  for (int server = 0; server < 8; ++server) {
    pace.of_servers[server].bytes_in = 40'000;
    pace.of_servers[server].bytes_out = 40'000;
  }
  const ExchangeParts parts = divide_exchange(
      {.exposed_ms = 100, .communication_ms = 100, .bytes_out = 40'000, .bytes_in = 40'000, .rounds = 1}, pace);
  EXPECT_NEAR(parts.worker_bytes, 20'000 + 10'000, 1e-9);
  EXPECT_NEAR(parts.link, 30, 1e-9);
  EXPECT_NEAR(parts.incast, 0, 1e-9);
  EXPECT_NEAR(parts.unexplained, 70, 1e-9);
}

}  // namespace
}  // namespace syncopate::experiments

// Who shares a link in a run, as its exchanges are chosen by it.
#include "experiments/cluster/process/exchange_ground.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "experiments/cluster/process/test_rows.h"
#include "tests/support/resolved.h"
#include "worker/data/zipf_sets.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::Pair;

RunRequest request() {
  RunRequest request;
  request.mode = Mode::kHybrid;
  request.model = "ncf";
  request.dataset = "zipf-ratings";
  request.exchange = TensorExchange::kAuto;
  request.workers = 2;
  request.servers = 2;
  return request;
}

// Workers and servers of each link.
std::vector<std::pair<int, int>> links_of(const RunRequest& request) {
  std::vector<std::pair<int, int>> links;
  for (const ExchangeGround::Host& host : exchange_ground(resolved(request), std::nullopt).hosts) {
    links.emplace_back(host.workers, host.servers);
  }
  return links;
}

TEST(ExchangeGround, GivesEachProcessALinkUnlessHostsHaveThem) {
  EXPECT_THAT(links_of(request()), ElementsAre(Pair(1, 0), Pair(1, 0), Pair(0, 1), Pair(0, 1)));
  RunRequest simulated = request();
  simulated.cluster = ClusterKind::kSimulated;
  EXPECT_THAT(links_of(simulated), ElementsAre(Pair(1, 0), Pair(1, 0), Pair(0, 1), Pair(0, 1)));
  simulated.hosts = numbered_hosts(2, 1);
  EXPECT_THAT(links_of(simulated), ElementsAre(Pair(1, 1), Pair(1, 1)));
  simulated.hosts = numbered_hosts(1, 2);
  EXPECT_THAT(links_of(simulated), ElementsAre(Pair(2, 2)));
  RunRequest one_machine = request();
  one_machine.hosts = {{.name = "localhost", .slots = 2}};
  EXPECT_THAT(links_of(one_machine), ElementsAre(Pair(1, 0), Pair(1, 0), Pair(0, 1), Pair(0, 1)));
}

TEST(ExchangeGround, GivesAWorkerAndItsServerOne) {
  for (const ClusterKind cluster : {ClusterKind::kReal, ClusterKind::kSimulated}) {
    RunRequest colocated = request();
    colocated.cluster = cluster;
    colocated.colocated = true;
    EXPECT_THAT(links_of(colocated), ElementsAre(Pair(1, 1), Pair(1, 1)));
    colocated.hosts = {{.name = "localhost", .slots = 2}};
    if (cluster == ClusterKind::kReal) EXPECT_THAT(links_of(colocated), ElementsAre(Pair(1, 1), Pair(1, 1)));
  }
}

TEST(ExchangeGround, TakesTheLinkThatIsGivenThenTheOneThatIsMeasured) {
  RunRequest shaped = request();
  shaped.shape = *LinkShape::parse("1gbit+3ms");
  const allreduce::LinkModel measured{.latency = 1e-3, .seconds_per_byte = 2e-9};
  const ExchangeGround given = exchange_ground(resolved(shaped), measured);
  EXPECT_EQ(given.latency, 3e-3);
  EXPECT_EQ(given.seconds_per_byte, 1 / shaped.shape->payload_bytes_per_second());
  EXPECT_EQ(exchange_ground(resolved(request()), measured).seconds_per_byte, 2e-9);
  EXPECT_EQ(exchange_ground(resolved(request()), std::nullopt).seconds_per_byte, kMemoryLink.seconds_per_byte);
  EXPECT_TRUE(given.sums_whole_tables);
  shaped.sparse_exchange = allreduce::SparseExchange::kRows;
  EXPECT_FALSE(exchange_ground(resolved(shaped), std::nullopt).sums_whole_tables);
}

TEST(RowsAStep, AreThoseOfBatchesFromAllOfTheSet) {
  const worker::DatasetPair data = worker::make_zipf_ratings({.rows = 300, .train = 64, .test = 10}, 3);
  const auto backend = worker::make_reference_backend();
  const auto model = std::move(*worker::make_model("ncf:4", data.train->form(), 8, *backend));
  // 64 samples make 8 batches of every 8th: four of them, two apart.
  std::vector<double> expected(2);
  for (std::int64_t first : {0, 2, 4, 6}) {
    std::set<int> rows[2];
    for (std::int64_t i = 0; i < 8; ++i) {
      int ids[2], label;
      data.train->read(first + 8 * i, 0, {.values = {}, .ids = ids, .labels = {&label, 1}});
      for (std::size_t table : {0, 1}) rows[table].insert(ids[table]);
    }
    for (std::size_t table : {0, 1}) expected[table] += static_cast<double>(rows[table].size()) / 4;
  }
  EXPECT_EQ(rows_a_step(*model, *data.train), expected);
}

}  // namespace
}  // namespace syncopate::experiments

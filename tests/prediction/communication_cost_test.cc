#include "prediction/communication_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate::prediction {
namespace {

using testing::ElementsAre;

constexpr double kExact = 1e-9;

TEST(CommunicationCost, RingTakesAPthOfTheBytesInEachOfItsMessages) {
  // 4 ranks, 256 MiB over 5 Gb/s: 6 messages of 64 MiB, 0.107374 s and 1 ms each.
  const Network network{.alpha = 0.001, .bytes_per_second = 625e6, .workers = 4};
  EXPECT_NEAR(ring_seconds(268435456, network), 6 * (0.001 + 0.1073741824), kExact);
  EXPECT_EQ(ring_seconds(1e9, {.alpha = 1, .bytes_per_second = 1, .workers = 1}), 0);
}

TEST(CommunicationCost, TreeSendsEverythingUpAndDownItsLevels) {
  const Network network{.alpha = 0.5, .bytes_per_second = 100, .workers = 5};
  EXPECT_NEAR(tree_seconds(200, network), 2 * 3 * (0.5 + 2), kExact);
}

TEST(CommunicationCost, HalvingDoublingMovesAsMuchAsARingInFewerMessages) {
  Network network{.alpha = 0.5, .bytes_per_second = 100, .workers = 8};
  EXPECT_NEAR(halving_doubling_seconds(400, network), 2 * 3 * 0.5 + 7, kExact);  // 2 x 7/8 x 4 s
  network.workers = 1;
  EXPECT_EQ(halving_doubling_seconds(400, network), 0);
  // Two ranks beyond 8 give all they have away and get it back.
  network.workers = 10;
  EXPECT_NEAR(halving_doubling_seconds(400, network), 2 * (0.5 + 4) + 2 * 3 * 0.5 + 7, kExact);
}

// 4 hosts of 8: in the rounds of distances 8 and 16 all 8 ranks of a host send a 16th and a 32nd through its link.
TEST(CommunicationCost, RanksOfAHostShareItsLink) {
  const Network network{.alpha = 0.5, .bytes_per_second = 100, .workers = 32, .workers_per_host = 8};
  EXPECT_NEAR(halving_doubling_seconds(400, network), 2 * 5 * 0.5 + 2 * (0.5 + 0.25) * 4, kExact);
  EXPECT_NEAR(tree_seconds(400, network), 2 * 5 * 0.5 + 2 * (8 + 8) * 4, kExact);
  EXPECT_NEAR(ring_seconds(400, network), 2 * 31 * (0.5 + 4.0 / 32),
              kExact);  // the last of a host alone sends to another
  EXPECT_NEAR(hierarchical_seconds(400, network), 2 * 3 * (0.5 + 4.0 / 4), kExact);  // a ring of hosts
  const Network one_host{.alpha = 0.5, .bytes_per_second = 100, .workers = 8, .workers_per_host = 8};
  EXPECT_EQ(hierarchical_seconds(400, one_host), 0);
  EXPECT_NEAR(halving_doubling_seconds(400, one_host), 2 * 3 * 0.5, kExact);
  EXPECT_NEAR(tree_seconds(400, one_host), 2 * 3 * 0.5, kExact);
}

// 8 ranks, three a host. At distance 1 ranks 2 and 3 are on two hosts; at distance 2 all of the second host's ranks
// have their partners elsewhere, and at distance 4 all ranks. The busiest host sends a half, three quarters, three
// eighths.
TEST(CommunicationCost, HalvingDoublingCountsThePartnersThatAreOnOtherHosts) {
  const Network network{.alpha = 0.5, .bytes_per_second = 100, .workers = 8, .workers_per_host = 3};
  EXPECT_NEAR(halving_doubling_seconds(400, network), 2 * 3 * 0.5 + 2 * (1.0 / 2 + 3.0 / 4 + 3.0 / 8) * 4, kExact);
}

TEST(CommunicationCost, OfAllreduceInsideOneHostIsThatOfItsMessages) {
  const Network one_host{.alpha = 0.5, .bytes_per_second = 1, .workers = 6, .workers_per_host = 8};
  EXPECT_NEAR(ring_seconds(400, one_host), 2 * 5 * 0.5, kExact);
  EXPECT_NEAR(tree_seconds(400, one_host), 2 * 3 * 0.5, kExact);
  EXPECT_NEAR(halving_doubling_seconds(400, one_host), 2 * 3 * 0.5, kExact);
}

TEST(CommunicationCost, BytepsIsAllreduceWithoutServersAndOneCopyWithAsManyAsWorkers) {
  for (const int n : {2, 3, 8, 32}) {
    const Network network{.bytes_per_second = 1e9, .workers = n};
    EXPECT_NEAR(byteps_seconds(1e9, network, 0), ring_seconds(1e9, network), kExact);
    EXPECT_NEAR(byteps_seconds(1e9, network, n), 1, kExact);
    EXPECT_NEAR(byteps_seconds(1e9, network, 2 * n), 1, kExact);
  }
  const Network one_host{.alpha = 1, .bytes_per_second = 1, .workers = 8, .workers_per_host = 8};
  EXPECT_EQ(byteps_seconds(1e9, one_host, 4), 0);
}

// Counts the bytes that each link carries, in place of the formula: a host with workers pushes what it does not have
// and answers the others' pulls; a host with a server alone answers all.
TEST(CommunicationCost, BytepsFillsEveryLinkAlike) {
  for (const int n : {2, 4, 16}) {
    for (int k = 0; k <= n; ++k) {
      const BytepsParts parts = byteps_parts(n, k);
      EXPECT_NEAR(n * parts.on_worker_host + k * parts.on_server_host, 1, kExact);
      const double worker_link = (1 - parts.on_worker_host) + (n - 1) * parts.on_worker_host;
      const double server_link = n * parts.on_server_host;
      const double seconds = byteps_seconds(1, {.bytes_per_second = 1, .workers = n}, k);
      EXPECT_NEAR(worker_link, seconds, kExact) << n << " " << k;
      EXPECT_NEAR(server_link, seconds, kExact) << n << " " << k;
    }
  }
}

TEST(CommunicationCost, PlacesEachVariableOnTheServerWithLeast) {
  const std::vector<double> bytes = {4, 4, 1, 6, 2, 2};
  // Loads: 4 0 0, 4 4 0, 4 4 1, 4 4 7, 6 4 7, 6 6 7.
  EXPECT_THAT(place_greedily(bytes, 3), ElementsAre(0, 1, 2, 2, 0, 1));
  EXPECT_THAT(place_greedily(bytes, 1), testing::Each(0));
}

}  // namespace
}  // namespace syncopate::prediction

#include "prediction/server_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

using testing::ElementsAre;

// 100, 200 and 300 bytes.
ModelProfile three_sizes() {
  ModelProfile profile{.model = "toy"};
  for (const int size : {25, 50, 75}) {
    profile.tensors.push_back({.name = std::to_string(size), .shape = {size}, .parameters = size, .forward_flops = 10});
  }
  return profile;
}

double busiest(int workers, int workers_per_host, const ExchangePlan& plan) {
  return busiest_link_bytes(three_sizes(),
                            {.bytes_per_second = 1, .workers = workers, .workers_per_host = workers_per_host}, plan);
}

TEST(ServerLoad, SharesBytesEvenlyOrByWholeVariables) {
  EXPECT_THAT(bytes_on_servers(three_sizes(), {.exchange = Exchange::kServers, .servers = 4}),
              ElementsAre(150, 150, 150, 150));
  EXPECT_THAT(
      bytes_on_servers(three_sizes(), {.exchange = Exchange::kServers, .servers = 2, .sharding = Sharding::kWhole}),
      ElementsAre(400, 200));
}

TEST(ServerLoad, SeparateServersCarryWMOverKUnlessAWorkersHostCarriesMore) {
  EXPECT_DOUBLE_EQ(busiest(8, 1, {.exchange = Exchange::kServers, .servers = 2}), 8 * 600 / 2);
  EXPECT_DOUBLE_EQ(busiest(2, 1, {.exchange = Exchange::kServers, .servers = 8}), 600);
  EXPECT_DOUBLE_EQ(busiest(8, 4, {.exchange = Exchange::kServers, .servers = 8}), 4 * 600);
  EXPECT_DOUBLE_EQ(busiest(8, 1, {.exchange = Exchange::kServers, .servers = 2, .sharding = Sharding::kWhole}),
                   8 * 400);
}

TEST(ServerLoad, ColocatedServersShareTheirLinksWithWorkers) {
  // 2(p-1) M / p with a server on each of 4 hosts: 900 bytes.
  EXPECT_DOUBLE_EQ(busiest(4, 1, {.exchange = Exchange::kServers, .servers = 4, .colocated = true}), 900);
  // One server on one of 4 hosts: 3 workers elsewhere; its own worker's traffic stays on the host.
  EXPECT_DOUBLE_EQ(busiest(4, 1, {.exchange = Exchange::kServers, .servers = 1, .colocated = true}), 3 * 600);
  EXPECT_DOUBLE_EQ(busiest(4, 4, {.exchange = Exchange::kServers, .servers = 1, .colocated = true}), 0);
  // The third worker is alone on its host.
  EXPECT_DOUBLE_EQ(busiest(3, 2, {.exchange = Exchange::kServers, .servers = 1, .colocated = true}), 600);
  EXPECT_DOUBLE_EQ(busiest(3, 2, {.exchange = Exchange::kServers, .servers = 2, .colocated = true}), 2 * 300 + 300);
}

// 4 hosts and 2 more: a tenth of all on each, and three tenths.
TEST(ServerLoad, SpareServersHaveWhatFillsAllLinksAlike) {
  const ExchangePlan plan{.exchange = Exchange::kServers, .servers = 4, .colocated = true, .spare_servers = 2};
  EXPECT_THAT(bytes_on_servers(three_sizes(), plan),
              testing::Pointwise(testing::DoubleEq(), {60.0, 60.0, 60.0, 60.0, 180.0, 180.0}));
  EXPECT_DOUBLE_EQ(busiest(4, 1, plan), 4 * 180);
  EXPECT_DOUBLE_EQ(busiest(8, 2, plan), 8 * 180);
}

// 2 hosts of 4 are as 2 workers, and a third host of one as a third.
TEST(ServerLoad, LinksCarryOneGradientOfAnAggregatedHost) {
  EXPECT_DOUBLE_EQ(busiest(8, 4, {.exchange = Exchange::kServers, .servers = 1, .aggregated = true}), 2 * 600);
  EXPECT_DOUBLE_EQ(busiest(8, 4, {.exchange = Exchange::kServers, .servers = 8, .aggregated = true}), 600);
  EXPECT_DOUBLE_EQ(busiest(9, 4, {.exchange = Exchange::kServers, .servers = 1, .aggregated = true}), 3 * 600);
  EXPECT_DOUBLE_EQ(busiest(8, 4, {.exchange = Exchange::kServers, .servers = 2, .colocated = true, .aggregated = true}),
                   600);
}

}  // namespace
}  // namespace syncopate::prediction

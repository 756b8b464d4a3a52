#include "prediction/host_prices.h"

#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

constexpr HostPrices kPrices{.worker = 3, .server = 0.5};
constexpr Network kEightOnFour{.bytes_per_second = 1, .workers = 8, .workers_per_host = 2};

TEST(HostPrices, PayForWorkersHostsAndForServersAlone) {
  // 4 hosts at 3 and 2 at 0.5 are 13 an hour; at 1000 samples/s a million takes 1000 s.
  const ExchangePlan separate{.exchange = Exchange::kServers, .servers = 2};
  EXPECT_DOUBLE_EQ(cost_per_million_samples(kPrices, kEightOnFour, separate, 1000), 13 * 1000.0 / 3600);
  const ExchangePlan byteps{.exchange = Exchange::kByteps, .servers = 2};
  EXPECT_DOUBLE_EQ(cost_per_million_samples(kPrices, kEightOnFour, byteps, 1000), 13 * 1000.0 / 3600);
}

TEST(HostPrices, PayForSpareServersBesideColocatedOnes) {
  const ExchangePlan plan{.exchange = Exchange::kServers, .servers = 4, .colocated = true, .spare_servers = 2};
  EXPECT_EQ(server_hosts(plan), 2);
}

TEST(HostPrices, HaveNothingExtraForColocatedServersNorForAllreduce) {
  const ExchangePlan colocated{.exchange = Exchange::kServers, .servers = 4, .colocated = true};
  for (const ExchangePlan& plan : {colocated, ExchangePlan{.exchange = Exchange::kRing, .servers = 7}}) {
    EXPECT_EQ(server_hosts(plan), 0);
    EXPECT_DOUBLE_EQ(cost_per_million_samples(kPrices, kEightOnFour, plan, 500), 12 * 2000.0 / 3600);
  }
}

}  // namespace
}  // namespace syncopate::prediction

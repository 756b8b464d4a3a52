#include "prediction/host_memory.h"

#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

// 100, 200 and 300 bytes.
ModelProfile six_hundred_bytes() {
  ModelProfile profile{.model = "toy"};
  for (const int size : {25, 50, 75}) {
    profile.tensors.push_back({.name = std::to_string(size), .shape = {size}, .parameters = size, .forward_flops = 10});
  }
  return profile;
}

double need_of(const ExchangePlan& plan, int state_floats) {
  return worker_host_bytes(six_hundred_bytes(), {.bytes_per_second = 1, .workers = 4, .workers_per_host = 2}, plan,
                           state_floats);
}

TEST(HostMemory, HoldsTheOptimizersStateOfEachWorkerUnderAllreduce) {
  EXPECT_DOUBLE_EQ(need_of({.exchange = Exchange::kRing}, 0), 2 * 2 * 600);
  EXPECT_DOUBLE_EQ(need_of({.exchange = Exchange::kHalvingDoubling}, 2), 2 * 4 * 600);
}

TEST(HostMemory, DividesWhatIsShardedByAllWorkers) {
  EXPECT_DOUBLE_EQ(need_of({.exchange = Exchange::kRing, .stage = 1}, 2), 2 * (600 + 600 + 2 * 150));
  EXPECT_DOUBLE_EQ(need_of({.exchange = Exchange::kRing, .stage = 2}, 2), 2 * (600 + 150 + 2 * 150 + 225))
      << "a gradient of 300";
  EXPECT_DOUBLE_EQ(need_of({.exchange = Exchange::kRing, .stage = 3}, 2), 2 * (150 + 150 + 2 * 150 + 2 * 225));
}

TEST(HostMemory, LeavesTheStateToServersElsewhere) {
  EXPECT_DOUBLE_EQ(need_of({.exchange = Exchange::kServers, .servers = 3}, 2), 2 * 2 * 600);
}

TEST(HostMemory, HoldsAStageWithTheGradientsOfAMicrobatchAndWhatItBorrows) {
  EXPECT_DOUBLE_EQ(stage_host_bytes(300, 0, 1, 2), 4 * 300);
  EXPECT_DOUBLE_EQ(stage_host_bytes(300, 0, 8, 2), 5 * 300);
  EXPECT_DOUBLE_EQ(stage_host_bytes(300, 100, 8, 0), 3 * 300 + 2 * 100);
}

TEST(HostMemory, AddsTheLargestServerWhereServersAreOnWorkersHosts) {
  ExchangePlan plan{.exchange = Exchange::kServers, .servers = 2, .colocated = true};
  EXPECT_DOUBLE_EQ(need_of(plan, 2), 2 * 2 * 600 + 4 * 300);
  plan.spare_servers = 1;  // which has another half: of 2 hosts each server has a quarter
  EXPECT_DOUBLE_EQ(need_of(plan, 2), 2 * 2 * 600 + 4 * 150);
  plan.spare_servers = 0;
  plan.sharding = Sharding::kWhole;  // greedily: 100 and 300, 200
  EXPECT_DOUBLE_EQ(need_of(plan, 1), 2 * 2 * 600 + 3 * 400);
}

}  // namespace
}  // namespace syncopate::prediction

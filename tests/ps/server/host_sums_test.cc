// How a shard sums the gradients of a synchronous update: host by host, with the same bits whether each worker pushes
// its own or one of each host the sum.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/os/flush_denormals.h"
#include "common/random.h"
#include "ps/policy/host_groups.h"
#include "tests/ps/server/shard_harness.h"

namespace syncopate::ps {
namespace {

using Hosts = std::vector<int>;  // workers by host
using Gradients = std::vector<std::vector<float>>;

constexpr std::size_t kElements = 4096 + 37;  // more than one block, not a multiple of one
constexpr float kRate = 0.5f;

int workers_of(const Hosts& hosts) {
  int workers = 0;
  for (const int of_host : hosts) workers += of_host;
  return workers;
}

// Returns all ways to put `workers` on hosts, in order.
std::vector<Hosts> all_hosts(int workers) {
  if (workers == 0) return {{}};
  std::vector<Hosts> all;
  for (int of_last = 1; of_last <= workers; ++of_last) {
    for (Hosts hosts : all_hosts(workers - of_last)) {
      hosts.push_back(of_last);
      all.push_back(std::move(hosts));
    }
  }
  return all;
}

// Values of very different sizes, so that sums depend on the order.
Gradients drawn_gradients(int workers) {
  Random random(3);
  Gradients gradients(static_cast<std::size_t>(workers), std::vector<float>(kElements));
  for (std::vector<float>& gradient : gradients) {
    for (float& value : gradient) {
      value = static_cast<float>(random.normal()) * (random.below(2) == 0 ? 0x1p-16f : 0x1p8f);
    }
  }
  return gradients;
}

std::vector<float> sum_of(const Gradients& gradients, int begin, int count) {
  const FlushDenormals flush;  // as workers compute
  std::vector<float> sum = gradients[static_cast<std::size_t>(begin)];
  for (int worker = begin + 1; worker < begin + count; ++worker) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[static_cast<std::size_t>(worker)][i];
  }
  return sum;
}

// The sum of each host.
Gradients sums_by_host(const Gradients& gradients, const Hosts& hosts) {
  Gradients sums;
  int begin = 0;
  for (const int of_host : hosts) {
    sums.push_back(sum_of(gradients, begin, of_host));
    begin += of_host;
  }
  return sums;
}

// What plain loops make of zero weights.
std::vector<float> expected_of(const Gradients& gradients, const Hosts& hosts) {
  const Gradients sums = sums_by_host(gradients, hosts);
  const std::vector<float> sum = sum_of(sums, 0, static_cast<int>(sums.size()));
  std::vector<float> weights(sum.size(), 0.0f);
  OptimizerState state({.kind = OptimizerKind::kSgd}, sum.size());
  Optimizer({.kind = OptimizerKind::kSgd})
      .apply(weights, sum, state, 0,
             {.learning_rate = kRate, .gradient_scale = 1.0f / static_cast<float>(workers_of(hosts)), .number = 1});
  return weights;
}

std::vector<float> weights_of(const ShardHarness& job) { return {job.weights().begin(), job.weights().end()}; }

// Each worker pushes its own, the highest first.
std::vector<float> flat(const Gradients& gradients, const HostGroups& hosts, float rate = kRate) {
  ShardHarness job(static_cast<int>(gradients.size()), "sync", gradients[0].size(), {.kind = OptimizerKind::kSgd}, {},
                   nullptr, hosts);
  job.join_all();
  for (int worker = job.worker_count(); worker-- > 0;) {
    job.push(worker, gradients[static_cast<std::size_t>(worker)], rate);
  }
  EXPECT_EQ(job.version(), 1);
  return weights_of(job);
}

// The lowest of each host pushes its sum.
std::vector<float> aggregated(const Gradients& gradients, const Hosts& hosts, float rate = kRate) {
  ShardHarness job(static_cast<int>(gradients.size()), "sync", gradients[0].size(), {.kind = OptimizerKind::kSgd}, {},
                   nullptr, HostGroups(hosts, true));
  job.join_all();
  const Gradients sums = sums_by_host(gradients, hosts);
  int lowest = 0;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    job.push(lowest, sums[host], rate);
    lowest += hosts[host];
  }
  EXPECT_EQ(job.version(), 1);
  return weights_of(job);
}

TEST(HostSums, AreThoseOfPlainLoopsForEveryGroupingOfWorkers) {
  for (int workers = 1; workers <= 6; ++workers) {
    const Gradients gradients = drawn_gradients(workers);
    for (const Hosts& hosts : all_hosts(workers)) {
      const std::vector<float> expected = expected_of(gradients, hosts);
      SCOPED_TRACE(testing::PrintToString(hosts));
      EXPECT_TRUE(flat(gradients, HostGroups(hosts, false)) == expected);
      EXPECT_TRUE(aggregated(gradients, hosts) == expected);
    }
  }
}

TEST(HostSums, AreInTheOrderOfRanksOnOneHostAndWithAWorkerAHost) {
  const Gradients gradients = drawn_gradients(5);
  const std::vector<float> by_rank = flat(gradients, {});
  EXPECT_TRUE(flat(gradients, HostGroups({5}, false)) == by_rank);
  EXPECT_TRUE(flat(gradients, HostGroups({1, 1, 1, 1, 1}, false)) == by_rank);
  EXPECT_FALSE(flat(gradients, HostGroups({2, 3}, false)) == by_rank) << "the values do not tell orders apart";
}

TEST(HostSums, AreOfThoseThatAreLeft) {
  const Gradients gradients = drawn_gradients(5);
  ShardHarness job(5, "sync", kElements, {.kind = OptimizerKind::kSgd}, {}, nullptr, HostGroups({2, 3}, false));
  job.join_all();
  for (const int worker : {4, 0, 3, 1}) job.push(worker, gradients[static_cast<std::size_t>(worker)], kRate);
  job.lose(2);
  const Gradients left = {gradients[0], gradients[1], gradients[3], gradients[4]};
  EXPECT_TRUE(weights_of(job) == expected_of(left, {2, 2}));
}

// The sum of the first host's is no normal number, and the second's is so small that it would change it.
TEST(HostSums, TakeNumbersTooSmallToBeNormalForZeroWhereverTheyAreSummed) {
  const Gradients gradients = {{0x1.8p-126f}, {-0x1p-126f}, {0x1p-124f}};
  const float rate = 0x1p60f;
  const std::vector<float> weights = flat(gradients, HostGroups({2, 1}, false), rate);
  EXPECT_EQ(weights, aggregated(gradients, {2, 1}, rate));
  EXPECT_EQ(weights, flat({{0}, {0}, {0x1p-124f}}, HostGroups({2, 1}, false), rate));
}

}  // namespace
}  // namespace syncopate::ps

#include "allreduce/strategy/shared_replica.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <numeric>
#include <thread>
#include <vector>

#include "common/random.h"

namespace syncopate::allreduce {
namespace {

using Weights = std::vector<float>;

constexpr std::size_t kReplicaElements = 37;  // no multiple of a vector

Weights drawn(Random& random) {
  Weights values(kReplicaElements);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

double total(const std::vector<Weights>& replicas) {
  double sum = 0;
  for (const Weights& each : replicas) sum = std::accumulate(each.begin(), each.end(), sum);
  return sum;
}

// Updates and averages in a drawn order, beside plain loops over plain vectors. An average changes no sum of all.
TEST(SharedReplica, ComesToWhatAPlantedSequenceOfUpdatesAndAveragesGives) {
  constexpr std::size_t kReplicas = 5;
  Random random(1);
  std::vector<Weights> memory, expected;
  for (std::size_t i = 0; i < kReplicas; ++i) memory.push_back(drawn(random));
  expected = memory;
  std::deque<SharedReplica> replicas;
  for (Weights& weights : memory) replicas.emplace_back(weights);
  std::vector<std::int64_t> averages(kReplicas);
  for (int event = 0; event < 2000; ++event) {
    const auto one = static_cast<std::size_t>(random.below(kReplicas));
    if (random.below(2) == 0) {
      const Weights step = drawn(random);
      const std::int64_t met = replicas[one].change(
          [&](std::span<float> weights) {
            for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= step[i];
          },
          false);
      for (std::size_t i = 0; i < kReplicaElements; ++i) expected[one][i] -= step[i];
      EXPECT_EQ(met, std::exchange(averages[one], 0));
    } else {
      const auto other = (one + 1 + static_cast<std::size_t>(random.below(kReplicas - 1))) % kReplicas;
      EXPECT_EQ(replicas[one].change([](auto) {}, true), std::exchange(averages[one], 0));
      ASSERT_TRUE(replicas[one].wait_for_loan());
      Weights mean(kReplicaElements);
      replicas[other].average_with(replicas[one].loaned(), mean);
      replicas[one].give_back(mean);
      ++averages[one];
      ++averages[other];
      const double before = total(expected);
      for (std::size_t i = 0; i < kReplicaElements; ++i) {
        expected[one][i] = expected[other][i] = (expected[one][i] + expected[other][i]) / 2;
      }
      EXPECT_NEAR(total(expected), before, 1e-3);
      EXPECT_EQ(memory[one], memory[other]);
    }
    ASSERT_EQ(memory, expected) << "event " << event;
  }
}

TEST(SharedReplica, LetsNoUpdateInBetweenALoanAndItsEnd) {
  Weights memory(kReplicaElements, 8);
  SharedReplica replica(memory);
  (void)replica.change([](auto) {}, true);
  std::atomic<bool> changed = false;
  std::jthread computing([&] {
    EXPECT_EQ(replica.change([](std::span<float> weights) { weights[0] += 1; }, false), 1);
    changed = true;
  });
  ASSERT_TRUE(replica.wait_for_loan());
  EXPECT_EQ(replica.loaned()[0], 8);
  EXPECT_FALSE(changed);
  replica.give_back(Weights(kReplicaElements, 4));
  computing.join();
  EXPECT_EQ(memory[0], 5);
  EXPECT_EQ(memory[1], 4);
}

TEST(SharedReplica, EndsALoanWithoutAMeanAndLendsNothingOnceItIsClosed) {
  Weights memory(kReplicaElements, 8);
  SharedReplica replica(memory);
  (void)replica.change([](auto) {}, true);
  replica.close();
  EXPECT_TRUE(replica.wait_for_loan()) << "what was on loan before is still to be averaged";
  replica.give_back({});
  EXPECT_EQ(replica.change([](auto) {}, true), 0);
  EXPECT_FALSE(replica.wait_for_loan());
  EXPECT_EQ(memory, Weights(kReplicaElements, 8));
}

// Two that are averaged with each other while both are updated, by as many threads as there may be: what they are
// together is what updates have made of it.
TEST(SharedReplica, KeepsTheSumWhateverThreadsDoAtOnce) {
  constexpr int kSteps = 400;
  Weights first(kReplicaElements, 0), second(kReplicaElements, 0);
  SharedReplica active(first), passive(second);
  const auto add_one = [](std::span<float> weights) {
    for (float& weight : weights) weight += 1;
  };
  {
    std::jthread communicating([&] {
      Weights mean(kReplicaElements);
      while (active.wait_for_loan()) {
        passive.average_with(active.loaned(), mean);
        active.give_back(mean);
      }
    });
    std::jthread other([&] {
      for (int step = 0; step < kSteps; ++step) (void)passive.change(add_one, false);
    });
    for (int step = 0; step < kSteps; ++step) (void)active.change(add_one, true);
    active.close();
  }
  for (std::size_t i = 0; i < kReplicaElements; ++i) EXPECT_NEAR(first[i] + second[i], 2 * kSteps, 0.01);
}

}  // namespace
}  // namespace syncopate::allreduce

// Samples that do not cost the same, in every mode: who computes for how long, and who waits for whom.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::testing_support::sample_cost_runs {
namespace {

using Flags = std::vector<std::string>;

constexpr int kWorkers = 4, kSteps = 40;
constexpr double kComputeUs = 90e3;  // of a batch whose samples cost 1 each

const Flags kJob{"--model=mlp:784-32-10",
                 fmt::format("--workers={}", kWorkers),
                 fmt::format("--steps={}", kSteps),
                 "--batch-size=8",
                 "--train-samples=640",
                 "--test-samples=100",
                 "--warmup-steps=0",
                 "--evaluate-every=100epochs",
                 "--sample-cost=zipf"};
const Flags kSimulated{"--cluster=simulated", "--compute=90ms", "--shape=400gbit+1us"};

// By worker and step.
using Times = std::map<std::pair<int, int>, double>;

Times times(const Program& program, const std::string& name) {
  const std::vector<std::string> workers = program.column("steps.csv", "worker"),
                                 steps = program.column("steps.csv", "step"), cells = program.column("steps.csv", name);
  Times times;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    times[{std::stoi(workers[i]), std::stoi(steps[i])}] = std::stod(cells[i]);
  }
  return times;
}

Times sum(const Times& first, const Times& second) {
  Times sum = first;
  for (auto& [at, time] : sum) time += second.at(at);
  return sum;
}

double mean(const Times& times) {
  double sum = 0;
  for (const auto& [at, time] : times) sum += time;
  return sum / static_cast<double>(times.size());
}

struct Measured {
  Times computing, whole;
};

Measured measured(const Flags& mode) {
  Program program(kJob + kSimulated + mode);
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  const Times forward = times(program, "forward_us");
  EXPECT_EQ(forward.size(), kWorkers * kSteps);
  return {.computing = sum(forward, times(program, "backward_us")), .whole = times(program, "total_us")};
}

const Flags kAsync{"--mode=ps", "--consistency=async", "--work=quota", "--servers=2"};

TEST(SampleCost, IsTheSameInEveryMode) {
  const Times expected = measured({"--mode=allreduce"}).computing;
  EXPECT_NEAR(mean(expected) / kComputeUs, 1, 0.15);  // three deviations of the mean of so many samples
  for (const Flags& mode : {kAsync, Flags{"--mode=ps", "--consistency=sync"}, Flags{"--mode=allreduce", "--gossip"},
                            Flags{"--mode=allreduce", "--sync-every=4"}, Flags{"--mode=sharded", "--stage=1"},
                            Flags{"--mode=sharded", "--stage=3"}}) {
    for (const auto& [at, time] : measured(mode).computing) {
      ASSERT_NEAR(time, expected.at(at), 2) << mode.back() << ", worker " << at.first << ", step " << at.second;
    }
  }
}

// In step, each step lasts as long as the most costly batch; without a step in common each worker's as long as its own.
TEST(SampleCost, IsWaitedForByThoseWhoMeetInEachStep) {
  const Measured together = measured({"--mode=allreduce"}), apart = measured(kAsync);
  for (int step = 0; step < kSteps; ++step) {
    double most = 0;
    for (int worker = 0; worker < kWorkers; ++worker) most = std::max(most, together.computing.at({worker, step}));
    EXPECT_NEAR(together.whole.at({0, step}) / most, 1, 0.01) << step;
  }
  EXPECT_NEAR(mean(apart.whole) / mean(apart.computing), 1, 0.01);
  EXPECT_GT(mean(together.whole), 1.3 * mean(apart.whole));
}

TEST(SampleCost, IsAPipelinesTooInVirtualTime) {
  Program program(kJob + kSimulated + Flags{"--mode=allreduce", "--pipeline=2", "--microbatches=2"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  const Times forward = times(program, "forward_us");
  EXPECT_GT(std::ranges::max_element(forward, {}, [](const auto& each) { return each.second; })->second,
            2 * std::ranges::min_element(forward, {}, [](const auto& each) { return each.second; })->second);
}

// On real hosts what a worker has computed is waited for once more, times its cost. A wait may last too long, and the
// next ones are the shorter for it.
TEST(SampleCost, IsWaitedForOnRealHosts) {
  const Times costs = measured({"--mode=allreduce"}).computing;
  Program program(kJob + Flags{"--mode=allreduce"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  double due = 0, waited = 0;
  const Times computed = sum(times(program, "forward_us"), times(program, "backward_us"));
  for (const auto& [at, time] : times(program, "straggle_us")) {
    due += computed.at(at) * costs.at(at) / kComputeUs;
    waited += time;
  }
  EXPECT_GT(waited, 0.8 * due);
}

}  // namespace
}  // namespace syncopate::testing_support::sample_cost_runs

// --mode=sharded against its formulas: what a worker holds, and what it sends.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/slowness.h"

namespace syncopate::testing_support::sharded_runs {
namespace {

using Flags = std::vector<std::string>;

constexpr int kWorkers = 4;
constexpr double kWidth = 1024, kInner = 4;  // layers of kWidth x kWidth behind the first
constexpr double kParameters = 784 * kWidth + kWidth + kInner * (kWidth * kWidth + kWidth) + 10 * kWidth + 10;
const Flags kJob{"--model=mlp:784-1024-1024-1024-1024-1024-10",
                 "--optimizer=adam",
                 "--train-samples=2000",
                 "--test-samples=100",
                 "--batch-size=4",
                 "--steps=6",
                 "--evaluate-every=100epochs",
                 "--transport=sockets",
                 "--collective=ring",
                 fmt::format("--workers={}", kWorkers)};

// What the worker holds that has no other task: one sends weights to the evaluator. On a busy machine messages come
// before they are asked for, and are held meanwhile: of two runs, the one that held less.
double least_peak(const Flags& mode) {
  double least = 1e18;
  for (int run = 0; run < 2; ++run) {
    Program program(kJob + mode);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    const nlohmann::json peaks = program.summary()["peak_memory_bytes"];
    for (int worker = 0; worker < kWorkers; ++worker) {
      least = std::min(least, peaks[fmt::format("worker {}", worker)].get<double>());
    }
  }
  return least;
}

// Under adam each worker has its share of 8, 12 or all of 16 bytes a parameter. Under stages 2 and 3 some buckets, here
// of one layer each, are there as a whole: too few to be taken for another stage.
TEST(Sharded, HoldsWhatItsFormulaSays) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's memory is counted, too";
  const double whole = least_peak({"--mode=allreduce"});
  const double others = 1 - 1.0 / kWorkers, bucket = 4 * kWidth * kWidth * others;
  const std::pair<double, int> bytes_and_buckets[] = {{8, 1}, {12, 3}, {16, 4}};
  for (int stage = 1; stage <= 3; ++stage) {
    const auto [bytes, buckets] = bytes_and_buckets[stage - 1];
    const double saved = whole - least_peak({"--mode=sharded", fmt::format("--stage={}", stage)});
    EXPECT_LT(saved, 1.05 * bytes * kParameters * others) << "stage " << stage;
    EXPECT_GT(saved, 0.95 * (bytes * kParameters * others - buckets * bucket)) << "stage " << stage;
  }
}

// Every worker sends all gradients but its share, and its share of the weights to all others: once, which counts in the
// next step, and under stage 3
// for each pass, but for what backward begins with: the last two layers, and in the first step, which knows of no
// order, the last bucket.
TEST(Sharded, SendsWhatItsFormulaSays) {
  constexpr double kPadding = 6;  // behind the last bias, as the arena is aligned
  constexpr double kAll = kParameters + kPadding;
  constexpr double kBucket = kWidth + 10 * kWidth + 10 + kPadding, kLayers = kWidth * kWidth + kBucket;
  const std::pair<Flags, double> cases[] = {{{"--mode=allreduce"}, 6 * 2 * kAll},
                                            {{"--mode=sharded"}, (6 + 5) * kAll},
                                            {{"--mode=sharded", "--overlap=off"}, 6 * 2 * kAll},
                                            {{"--mode=sharded", "--stage=2"}, (6 + 5) * kAll},
                                            {{"--mode=sharded", "--stage=3"}, 6 * 3 * kAll - kBucket - 5 * kLayers}};
  for (const auto& [mode, elements] : cases) {
    Program program(kJob + mode);
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    double sent = 0;
    for (const std::string& cell : program.column("steps.csv", "bytes_out")) sent += std::stod(cell);
    EXPECT_EQ(sent, (kWorkers - 1) * 4 * elements) << mode.back();
  }
}

// What is gathered and summed beside computing, and what is waited for, in virtual time. The second model's layers are
// small, and several are gathered ahead.
TEST(Sharded, TakesAsLongAsItsClosedForm) {
  const std::tuple<const char*, const char*, double> models[] = {
      {"--model=mlp:784-1024-1024-1024-10", "--compute=50ms", 50e3},
      {"--model=mlp:784-512-512-512-512-512-512-10", "--compute=6ms", 6e3}};
  for (const auto& [model, compute, step_us] : models) {
    for (const Flags& way : {Flags{"--stage=2", "--overlap=on"}, Flags{"--stage=2", "--overlap=off"},
                             Flags{"--stage=3", "--overlap=on"}, Flags{"--stage=3", "--overlap=off"}}) {
      Program program(way + Flags{"--mode=sharded", "--cluster=simulated", "--workers=4", "--collective=ring", compute,
                                  model, "--shape=10gbit+20us", "--batch-size=1", "--steps=12", "--train-samples=2000",
                                  "--test-samples=100", "--evaluate-every=100epochs"});
      ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
      const std::string text = run_program({"why", program.output().string()}).out;
      std::smatch share;
      ASSERT_TRUE(std::regex_search(text, share, std::regex("measured is ([0-9]+) % of it"))) << text;
      EXPECT_NEAR(std::stod(share[1]), 100, 2) << model << " " << way[0] << " " << way[1];
      for (const std::string& forward : program.column("steps.csv", "forward_us")) {
        EXPECT_NEAR(std::stod(forward), step_us / 3, 50) << "without its waits";
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::testing_support::sharded_runs

// --mode=sharded against its formulas: what a worker holds, and what it sends.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/slowness.h"

namespace syncopate::testing_support {
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

// What the worker holds that has no other task: one sends weights to the evaluator, one buffers the first broadcast.
double least_peak(const Flags& mode) {
  Program program(kJob + mode);
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  double least = 1e18;
  const nlohmann::json peaks = program.summary()["peak_memory_bytes"];
  for (int worker = 0; worker < kWorkers; ++worker) {
    least = std::min(least, peaks[fmt::format("worker {}", worker)].get<double>());
  }
  return least;
}

// Under adam, of 16 bytes a parameter each worker has 8 for itself, of the other 8 (stage 1), of 12 (stage 2) or of all
// (stage 3) its share. From stage 2 on up to three buckets of gradients are there as a whole, here of one layer each,
// and under stage 3 the weights of two layers.
TEST(Sharded, HoldsWhatItsFormulaSays) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's memory is counted, too";
  const double whole = least_peak({"--mode=allreduce"});
  const double others = kParameters * (1 - 1.0 / kWorkers), bucket = 4 * kWidth * kWidth;
  EXPECT_NEAR(whole - least_peak({"--mode=sharded", "--stage=1"}), 8 * others, 0.05 * 8 * others);
  for (const int stage : {2, 3}) {
    const double saved = whole - least_peak({"--mode=sharded", fmt::format("--stage={}", stage)});
    const double most = (stage == 2 ? 12 : 16) * others, layers = stage == 2 ? 3 : 5;
    EXPECT_LT(saved, 1.05 * most) << "stage " << stage;
    EXPECT_GT(saved, 0.95 * (most - layers * bucket * (1 - 1.0 / kWorkers))) << "stage " << stage;
  }
}

// Every worker sends all gradients but its share, and its share of the weights to all others: once, and under stage 3
// for each pass, but for the last bucket, whose weights backward begins with.
TEST(Sharded, SendsWhatItsFormulaSays) {
  constexpr double kPadding = 6;  // behind the last bias, as the arena is aligned
  constexpr double kAll = kParameters + kPadding, kLast = kWidth + 10 * kWidth + 10 + kPadding;
  const std::pair<Flags, double> cases[] = {{{"--mode=allreduce"}, 2 * kAll},
                                            {{"--mode=sharded"}, 2 * kAll},
                                            {{"--mode=sharded", "--stage=2"}, 2 * kAll},
                                            {{"--mode=sharded", "--stage=3"}, 3 * kAll - kLast}};
  for (const auto& [mode, elements] : cases) {
    Program program(kJob + mode);
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    double sent = 0;
    for (const std::string& cell : program.column("steps.csv", "bytes_out")) sent += std::stod(cell);
    EXPECT_EQ(sent, 6 * (kWorkers - 1) * 4 * elements) << mode.back();
  }
}

// What is gathered and summed beside computing, and what is waited for, in virtual time.
TEST(Sharded, TakesAsLongAsItsClosedForm) {
  for (const char* stage : {"--stage=2", "--stage=3"}) {
    for (const char* overlap : {"--overlap=on", "--overlap=off"}) {
      Program program({"--mode=sharded", stage, overlap, "--cluster=simulated", "--workers=4", "--collective=ring",
                       "--compute=50ms", "--shape=10gbit+20us", "--model=mlp:784-1024-1024-1024-10", "--batch-size=1",
                       "--steps=12", "--train-samples=2000", "--test-samples=100", "--evaluate-every=100epochs"});
      ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
      const std::string text = run_program({"why", program.output().string()}).out;
      std::smatch share;
      ASSERT_TRUE(std::regex_search(text, share, std::regex("measured is ([0-9]+) % of it"))) << text;
      EXPECT_NEAR(std::stod(share[1]), 100, 2) << stage << " " << overlap;
    }
  }
}

}  // namespace
}  // namespace syncopate::testing_support

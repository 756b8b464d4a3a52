// Step times in virtual time beside those of real processes, over links so slow that the processor does not count.
// Margins are wide, as machines that test are busy: tests/bench/simulated_beside_real.py measures.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/network_hosts.h"
#include "tests/support/run_program.h"

namespace syncopate::testing_support {
namespace {

using Flags = std::vector<std::string>;

const Flags kSlowJob{"--model=mlp:784-64-10", "--batch-size=16", "--train-samples=2048", "--test-samples=64",
                     "--warmup-steps=2",      "--steps=10",      "--timeout=60",         "--transport=sockets"};
constexpr double kMostOffByLoad = 1.25;

nlohmann::json summary_of(const Flags& flags, const Flags& before = {}) {
  Program program(flags, before);
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  return program.summary();
}

// Returns the mean milliseconds of a step, once all are past their warm-up.
double step_of(const Flags& flags, const Flags& before = {}) {
  return summary_of(flags, before)["step_split_ms"]["step"].get<double>();
}

// What else the machine does makes real runs slower and never faster, so that the fastest of a few counts.
void expect_alike(double simulated, const std::function<double()>& real) {
  constexpr int kMostRuns = 4;
  double fastest = real();
  for (int runs = 1; runs < kMostRuns && simulated <= fastest / kMostOffByLoad; ++runs) {
    fastest = std::min(fastest, real());
  }
  EXPECT_LT(simulated, kMostOffByLoad * fastest);
  EXPECT_GT(simulated, fastest / kMostOffByLoad);
}

struct SlowLinkCase {
  std::string name;
  Flags flags;
};

std::ostream& operator<<(std::ostream& out, const SlowLinkCase& one) { return out << one.name; }

const SlowLinkCase kSlowRing{"Ring", {"--mode=allreduce", "--collective=ring"}};
const SlowLinkCase kSlowSync{"PsSync", {"--mode=ps", "--servers=2", "--consistency=sync"}};
const SlowLinkCase kSlowAsync{"PsAsync", {"--mode=ps", "--servers=2", "--consistency=async", "--work=quota"}};

class SimulatedBesideReal : public testing::TestWithParam<SlowLinkCase> {};

TEST_P(SimulatedBesideReal, TakesAsLongBehindEmulatedLinks) {
  const Flags flags = kSlowJob + GetParam().flags + Flags{"--workers=4", "--shape=20mbit+1ms"};
  expect_alike(step_of(flags + Flags{"--cluster=simulated", "--network=fluid"}), [&] { return step_of(flags); });
}

TEST_P(SimulatedBesideReal, TakesAsLongBehindLinksThatTheKernelLimits) {
  if (const std::string why = NetworkHosts::why_not(); !why.empty()) GTEST_SKIP() << why;
  const NetworkHosts hosts;
  if (!hosts.limit("a", "20mbit") || !hosts.limit("b", "20mbit")) GTEST_SKIP() << "tc has no token bucket filter here";
  const Flags flags = kSlowJob + GetParam().flags;
  const auto real = [&] {
    return step_of(flags + Flags{"--hosts=" + NetworkHosts::slots("a:1,b:1"), hosts.remote_shell()}, hosts.on("home"));
  };
  expect_alike(step_of(flags + Flags{"--cluster=simulated", "--hosts=2x1", "--shape=20mbit+50us"}), real);
}

// The delays of gradients, in updates: what learning suffers from. Workers that compute equally long come to the
// servers all at once, and what is first is chance; so each step has a drawn delay, the same on both clusters.
TEST(SimulatedStaleness, IsDistributedAsOnRealProcesses) {
  Flags flags = kSlowJob + kSlowAsync.flags + Flags{"--workers=4", "--shape=20mbit+1ms", "--straggler=all:exp:300"};
  std::ranges::replace(flags, std::string("--steps=10"), std::string("--steps=30"));
  std::map<std::string, std::map<int, double>> parts;  // by cluster: the part of all steps, by delay
  for (const char* cluster : {"real", "simulated"}) {
    const Flags where{fmt::format("--cluster={}", cluster)};
    const nlohmann::json summary =
        summary_of(cluster == std::string("real") ? flags : flags + where + Flags{"--network=fluid"});
    double steps = 0;
    for (const auto& bin : summary["staleness_histogram"]) steps += bin["steps"].get<double>();
    for (const auto& bin : summary["staleness_histogram"]) {
      parts[cluster][bin["staleness"].get<int>()] = bin["steps"].get<double>() / steps;
    }
  }
  double apart = 0;  // total variation: the part of the steps that would have to change its delay
  for (int delay = 0; delay < 64; ++delay) apart += std::abs(parts["real"][delay] - parts["simulated"][delay]) / 2;
  EXPECT_LT(apart, 0.25) << testing::PrintToString(parts);
  EXPECT_GT(parts["real"].rbegin()->first, 0) << "workers have delayed each other";
}

INSTANTIATE_TEST_SUITE_P(Of, SimulatedBesideReal, testing::Values(kSlowRing, kSlowSync, kSlowAsync),
                         [](const testing::TestParamInfo<SlowLinkCase>& info) { return info.param.name; });

}  // namespace
}  // namespace syncopate::testing_support

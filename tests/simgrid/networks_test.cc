// Our networks beside SimGrid: when each transfer of a plan arrives, and the last one. Prints a line for each plan, in
// milliseconds and in percent of the time that all of it takes:
//
//   build/release/tests/simgrid/simgrid_tests --gtest_brief=1
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/simgrid/oracle.h"

namespace syncopate::simulation {
namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;
// Percent. Less than a hundredth of it is measured.
constexpr double kFluidBar = 0.01;

// In percent of SimGrid's last arrival: how far from its own the arrival is that is furthest off, and how far the last
// one.
struct Deviation {
  double furthest = 0, last = 0;
};

Deviation deviation(const std::vector<double>& ours, const std::vector<double>& oracle) {
  const double end = std::ranges::max(oracle);
  Deviation found{.last = 100 * std::abs(std::ranges::max(ours) / end - 1)};
  for (std::size_t i = 0; i < ours.size(); ++i) {
    found.furthest = std::max(found.furthest, 100 * std::abs(ours[i] - oracle[i]) / end);
  }
  return found;
}

// A plan, and the most that frames and fifo may be off; none where the model is another one by design.
struct Case {
  TransferPlan plan;
  std::optional<Deviation> frames = Deviation{.furthest = 1, .last = 0.1};
  std::optional<Deviation> fifo;
};

void PrintTo(const Case& shown, std::ostream* out) { *out << shown.plan.name; }

// Whole messages in turn, which only the last one to arrive cannot tell from fair shares.
constexpr Deviation kLastAlone{.furthest = 100, .last = 0.1};
// What is under way on several lines at once, and began at any time, has the order of its frames rather than fair
// shares.
constexpr Deviation kDrawn{.furthest = 30, .last = 5};

void expect_within(const std::optional<Deviation>& bar, const Deviation& found) {
  if (!bar) return;
  EXPECT_LT(found.furthest, bar->furthest);
  EXPECT_LT(found.last, bar->last);
}

class BesideSimGrid : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    fmt::print("{:<20}{:>10}{:>20}{:>20}{:>20}\n", "percent: one, last", "SimGrid", "fluid", "frames", "fifo");
  }
};

TEST_P(BesideSimGrid, TransfersArriveAlike) {
  const TransferPlan& plan = GetParam().plan;
  const std::vector<double> oracle = arrivals_by_simgrid(plan);
  const Deviation fluid = deviation(arrivals_by(NetworkModel::kFluid, plan), oracle);
  const Deviation frames = deviation(arrivals_by(NetworkModel::kFrames, plan), oracle);
  const Deviation fifo = deviation(arrivals_by(NetworkModel::kFifo, plan), oracle);
  expect_within(Deviation{kFluidBar, kFluidBar}, fluid);
  expect_within(GetParam().frames, frames);
  expect_within(GetParam().fifo, fifo);
  fmt::print("{:<20}{:>10.4f}", plan.name, 1e3 * std::ranges::max(oracle));
  for (const Deviation& each : {fluid, frames, fifo}) fmt::print("{:>12.4f}{:>8.4f}", each.furthest, each.last);
  fmt::print("\n");
}

INSTANTIATE_TEST_SUITE_P(
    Of, BesideSimGrid,
    testing::Values(Case{.plan = ring(16, 16 * kMegabyte), .fifo = Deviation{0.1, 0.1}},
                    Case{.plan = ring(64, 64 * kMegabyte), .fifo = Deviation{0.1, 0.1}},
                    Case{.plan = two_on_a_link(kMegabyte), .fifo = kLastAlone},
                    Case{.plan = incast(33, kMegabyte), .fifo = kLastAlone},
                    Case{.plan = unequal_incast(33, kMegabyte, 0), .fifo = kLastAlone},
                    // What began earlier has its window under way, and stays ahead.
                    Case{.plan = unequal_incast(33, 16 * kMegabyte, 100e-6), .frames = kLastAlone, .fifo = kLastAlone},
                    Case{.plan = all_to_all(16, kMegabyte), .fifo = kLastAlone},
                    Case{.plan = racks(16, 64 * kMegabyte), .frames = Deviation{.furthest = 2, .last = 0.1}},
                    Case{.plan = drawn(16, 16 * kMegabyte, 1), .frames = kDrawn},
                    Case{.plan = drawn(16, 16 * kMegabyte, 2), .frames = kDrawn},
                    Case{.plan = drawn(16, 16 * kMegabyte, 3), .frames = kDrawn}),
    [](const auto& each) {
      std::string name = each.param.plan.name;
      std::erase_if(name, [](char c) { return c == ','; });
      std::ranges::replace(name, ' ', '_');
      return name;
    });

// The bars above are narrow enough to see an error: here SimGrid's links are too slow by little.
TEST(SimGridWithSlowLinks, IsToldFromOurNetworks) {
  const TransferPlan plan = ring(16, 16 * kMegabyte);
  const std::vector<double> slower = arrivals_by_simgrid(plan, 0.99);
  for (const NetworkModel model : {NetworkModel::kFluid, NetworkModel::kFrames, NetworkModel::kFifo}) {
    EXPECT_GT(deviation(arrivals_by(model, plan), slower).last, 0.5);
  }
  EXPECT_GT(deviation(arrivals_by(NetworkModel::kFluid, plan), arrivals_by_simgrid(plan, 0.999)).furthest, kFluidBar);
}

}  // namespace
}  // namespace syncopate::simulation

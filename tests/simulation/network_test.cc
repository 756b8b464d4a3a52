#include "simulation/network.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tests/simulation/ten_gigabit.h"

namespace syncopate::simulation {
namespace {

constexpr Tick kMicrosecond = 1'000'000;
constexpr std::uint64_t kMegabyte = 1'000'000;
const std::uint64_t kFrame = frame_bytes({.bytes_per_second = k10Gbit});

class ANetwork : public testing::TestWithParam<NetworkModel> {
 protected:
  void build(const Fabric& fabric) {
    fabric_ = fabric;
    network_ = make_network({.model = GetParam(), .links = fabric.links()});
  }
  void build(int hosts) { build(ten_gigabit(hosts)); }
  // Two racks of four.
  void build_racks() {
    Fabric fabric = ten_gigabit(8);
    fabric.racks = 2;
    fabric.oversubscription = 4;
    build(fabric);
  }

  std::uint64_t begin(Tick now, int from, int to, std::uint64_t bytes) {
    const std::uint64_t id = ++last_;
    while (network_->next().value_or(now) < now) network_->advance(*network_->next(), happened_);
    const auto [found, is_new] = connections_.try_emplace({from, to});
    if (is_new) found->second = network_->connect(fabric_.path(from, to));
    network_->begin(now, {.id = id, .connection = found->second, .bytes = bytes});
    return id;
  }

  void run() {
    while (const std::optional<Tick> next = network_->next()) network_->advance(*next, happened_);
    for (const Network::Happening& each : happened_) {
      (each.what == Network::Happening::What::kSent ? sent_ : arrived_)[each.id] = each.time;
    }
  }

  // The time of `bytes` over one interface.
  static double wire(std::uint64_t bytes) { return static_cast<double>(bytes) / k10Gbit * 1e12; }

  Fabric fabric_;
  std::unique_ptr<Network> network_;
  std::map<std::pair<int, int>, int> connections_;
  std::vector<Network::Happening> happened_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Tick> sent_, arrived_;
};

TEST_P(ANetwork, TakesBytesOverBandwidthPlusLatencyForAMessageAlone) {
  build(2);
  const auto id = begin(0, 0, 1, kMegabyte);
  run();
  EXPECT_EQ(sent_[id], 800 * kMicrosecond);
  EXPECT_EQ(arrived_[id], 810 * kMicrosecond);
}

TEST_P(ANetwork, SendsAndReceivesAtOnce) {
  build(2);
  const auto there = begin(0, 0, 1, kMegabyte), back = begin(0, 1, 0, kMegabyte);
  run();
  EXPECT_EQ(arrived_[there], 810 * kMicrosecond);
  EXPECT_EQ(arrived_[back], 810 * kMicrosecond);
}

TEST_P(ANetwork, KeepsTheOrderOfAConnection) {
  build(2);
  const auto large = begin(0, 0, 1, kMegabyte), small = begin(0, 0, 1, 1);
  run();
  EXPECT_LT(arrived_[large], arrived_[small]);
}

TEST_P(ANetwork, BringsManyToOneAtTheReceiversSpeed) {
  build(9);
  for (int from = 1; from <= 8; ++from) begin(0, from, 0, kMegabyte);
  run();
  Tick last = 0;
  for (const auto& [id, time] : arrived_) last = std::max(last, time);
  EXPECT_NEAR(static_cast<double>(last), wire(8 * kMegabyte) + 10 * kMicrosecond, wire(8 * kFrame));
}

// A long message that is under way does not hold up a short one to somebody else, except where messages are sent whole.
TEST_P(ANetwork, SharesASendersLink) {
  build(3);
  begin(0, 0, 1, 10 * kMegabyte);
  const auto small = begin(0, 0, 2, kMegabyte / 10);
  run();
  if (GetParam() == NetworkModel::kFifo) {
    EXPECT_EQ(arrived_[small], 8080 * kMicrosecond + 10 * kMicrosecond);
  } else {
    EXPECT_NEAR(static_cast<double>(arrived_[small]), 2 * wire(kMegabyte / 10) + 10 * kMicrosecond, wire(2 * kFrame));
  }
}

TEST_P(ANetwork, HoldsTrafficBetweenRacksToTheirLine) {
  build_racks();
  for (int from = 0; from < 4; ++from) begin(0, from, from + 4, kMegabyte);
  run();
  Tick last = 0;
  for (const auto& [id, time] : arrived_) last = std::max(last, time);
  EXPECT_NEAR(static_cast<double>(last), wire(4 * kMegabyte) + 10 * kMicrosecond, wire(4 * kFrame));
}

TEST_P(ANetwork, DoesNotHoldTrafficWithinARackToItsLine) {
  build_racks();
  const auto id = begin(0, 0, 3, kMegabyte);
  run();
  EXPECT_EQ(arrived_[id], 810 * kMicrosecond);
}

TEST_P(ANetwork, LeavesAHostsInterfaceFreeOfWhatStaysWithinIt) {
  build(2);
  const auto local = begin(0, 0, 0, kMegabyte), out = begin(0, 0, 1, kMegabyte);
  run();
  EXPECT_EQ(arrived_[local], 100 * kMicrosecond);
  EXPECT_EQ(arrived_[out], 810 * kMicrosecond);
}

TEST_P(ANetwork, BeginsMessagesWhileOthersAreUnderWay) {
  build(3);
  const auto first = begin(0, 1, 0, kMegabyte);
  const auto second = begin(200 * kMicrosecond, 2, 0, kMegabyte);
  run();
  // Both are there after the time of two, and the first before the time of one and a half.
  EXPECT_NEAR(static_cast<double>(arrived_[second]), wire(2 * kMegabyte) + 10 * kMicrosecond, wire(2 * kFrame));
  const double shared = GetParam() == NetworkModel::kFifo ? 800 : 1400;
  EXPECT_NEAR(static_cast<double>(arrived_[first]), (shared + 10) * kMicrosecond, wire(2 * kFrame));
}

TEST(Frames, AreAnEighthOfAMillisecondOfTheirLinkWithinLimits) {
  EXPECT_EQ(frame_bytes({.bytes_per_second = 12.5e6}), 4096u);
  EXPECT_EQ(frame_bytes({.bytes_per_second = 1.25e8}), 15625u);
  EXPECT_EQ(frame_bytes({.bytes_per_second = k10Gbit}), 65536u);
}

INSTANTIATE_TEST_SUITE_P(Of, ANetwork,
                         testing::Values(NetworkModel::kFifo, NetworkModel::kFrames, NetworkModel::kFluid),
                         [](const auto& model) {
                           return model.param == NetworkModel::kFifo     ? "Fifo"
                                  : model.param == NetworkModel::kFrames ? "Frames"
                                                                         : "Fluid";
                         });

}  // namespace
}  // namespace syncopate::simulation

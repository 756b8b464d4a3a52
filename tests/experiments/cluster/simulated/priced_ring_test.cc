#include "experiments/cluster/simulated/priced_ring.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "allreduce/collective/part_header.h"
#include "simulation/simulated_wire.h"

namespace syncopate::experiments {
namespace {

using simulation::NetworkModel;

// Sums that ranks enter at drawn times, behind a broadcast.
struct DrawnSums {
  int ranks = 0;
  std::size_t segment_bytes = 0;
  double sum_time = 0;  // seconds a byte
  simulation::Fabric fabric;
  std::vector<std::size_t> lengths;
  std::vector<std::vector<Duration>> delays;  // by rank, before each sum
};

DrawnSums draw(std::mt19937& random) {
  const auto between = [&](int least, int most) { return std::uniform_int_distribution<>(least, most)(random); };
  DrawnSums drawn{.ranks = between(2, 9), .segment_bytes = static_cast<std::size_t>(between(0, 3)) * 4096};
  drawn.sum_time = between(0, 1) * 1e-10 * between(1, 9);
  drawn.fabric = {.hosts = drawn.ranks,
                  .bytes_per_second = 1e8 * between(1, 40),
                  .latency = std::chrono::microseconds(between(0, 60)),
                  .local_bytes_per_second = 1e10};
  const int most_late = between(0, 1) * 3000;
  for (int sum = 0; sum < 6; ++sum) drawn.lengths.push_back(static_cast<std::size_t>(between(1, 40'000)));
  drawn.delays.resize(static_cast<std::size_t>(drawn.ranks));
  for (std::vector<Duration>& delays : drawn.delays) {
    for (std::size_t i = 0; i < drawn.lengths.size(); ++i) {
      delays.push_back(std::chrono::milliseconds(i == 0 ? 50 : 0) + std::chrono::microseconds(between(0, most_late)));
    }
  }
  return drawn;
}

struct Outcome {
  std::vector<std::vector<TimePoint>> left;  // by rank, each sum
  std::vector<std::vector<float>> values;    // by rank, of all sums
  std::vector<std::int64_t> bytes;           // by rank: out, in
  std::uint64_t events = 0;
};

Outcome carry_out(const DrawnSums& drawn, NetworkModel model, bool priced) {
  simulation::World world;
  world.set_seconds_per_byte(Processing::kSum, drawn.sum_time);
  const simulation::NetworkOptions network{.model = model, .links = {}};
  simulation::SimulatedWire wire(world, drawn.fabric, network, 3);
  std::vector<int> hosts;
  for (int host = 0; host < drawn.ranks; ++host) hosts.push_back(host);
  const auto endpoints = wire.connect(hosts);
  const simulation::Link link = drawn.fabric.links().front();
  const allreduce::RingCosts costs{
      .ticks_on_link =
          [&](std::size_t bytes) {
            return *simulation::ticks_alone(network, link, link.latency, sizeof(allreduce::PartHeader) + 3 * bytes);
          },
      .ticks_of_latency = link.latency,
      .sum = [&](std::size_t bytes) { return from_seconds(drawn.sum_time * static_cast<double>(bytes)); }};
  const auto ring = std::make_shared<PricedRing>(world, drawn.ranks, drawn.segment_bytes / sizeof(float), costs);
  const auto ranks = static_cast<std::size_t>(drawn.ranks);
  Outcome outcome{.left = std::vector<std::vector<TimePoint>>(ranks),
                  .values = std::vector<std::vector<float>>(ranks),
                  .bytes = std::vector<std::int64_t>(2 * ranks)};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    world.start(fmt::format("rank {}", rank), [&, rank] {
      auto by_messages = allreduce::make_schedule_collective(
          *endpoints[rank], {.segment_bytes = drawn.segment_bytes, .clock = &world.clock()});
      std::unique_ptr<allreduce::Collective> collective = std::move(by_messages);
      if (priced) {
        collective = PricedRing::join(ring, std::unique_ptr<allreduce::ScheduleCollective>(
                                                static_cast<allreduce::ScheduleCollective*>(collective.release())));
      }
      const TimePoint end = world.now() + std::chrono::hours(1);
      const std::span<float> buffer = *collective->allocate(40'000);
      EXPECT_TRUE(collective->broadcast(buffer, 0, end).ok());
      for (std::size_t sum = 0; sum < drawn.lengths.size(); ++sum) {
        world.sleep_until(world.now() + drawn.delays[rank][sum]);
        const std::span<float> part = buffer.first(drawn.lengths[sum]);
        for (std::size_t i = 0; i < part.size(); ++i)
          part[i] = 0.1f * static_cast<float>((7 * i + 3 * rank + sum) % 11);
        EXPECT_TRUE(collective->all_reduce(part, end).ok());
        outcome.left[rank].push_back(world.now());
        outcome.values[rank].insert(outcome.values[rank].end(), part.begin(), part.end());
      }
      outcome.bytes[2 * rank] = collective->counters().payload_bytes_out;
      outcome.bytes[2 * rank + 1] = collective->counters().payload_bytes_in;
    });
  }
  EXPECT_TRUE(world.run().ok());
  outcome.events = world.events();
  return outcome;
}

TEST(APricedRing, IsTheMessagesRingToTheLastNanosecondAndBit) {
  std::mt19937 random(20);
  for (int i = 0; i < 60; ++i) {
    const DrawnSums drawn = draw(random);
    SCOPED_TRACE(fmt::format("case {}: {} ranks, segments of {} bytes, {} bytes/s", i, drawn.ranks, drawn.segment_bytes,
                             drawn.fabric.bytes_per_second));
    for (const NetworkModel model : {NetworkModel::kFifo, NetworkModel::kFrames}) {
      const Outcome messages = carry_out(drawn, model, false), priced = carry_out(drawn, model, true);
      EXPECT_EQ(messages.left, priced.left);
      EXPECT_EQ(messages.values, priced.values);
      EXPECT_EQ(messages.bytes, priced.bytes);
      EXPECT_LT(priced.events, messages.events);
    }
  }
}

TEST(APricedRing, IsWithinOnePercentOfAFluidNetwork) {
  std::mt19937 random(21);
  for (int i = 0; i < 20; ++i) {
    const DrawnSums drawn = draw(random);
    const Outcome messages = carry_out(drawn, NetworkModel::kFluid, false);
    const Outcome priced = carry_out(drawn, NetworkModel::kFluid, true);
    EXPECT_EQ(messages.values, priced.values);
    for (std::size_t rank = 0; rank < messages.left.size(); ++rank) {
      const double whole = seconds(messages.left[rank].back().time_since_epoch()) - 1;
      EXPECT_NEAR(seconds(priced.left[rank].back().time_since_epoch()) - 1, whole, 0.01 * whole);
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/cluster/simulated/simulated_schedules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "allreduce/collective/part_header.h"
#include "allreduce/collective/schedule_collective.h"
#include "simulation/simulated_wire.h"

namespace syncopate::experiments {
namespace {

using simulation::NetworkModel;

// Sums that ranks enter at drawn times, behind a broadcast.
struct DrawnSums {
  int ranks = 0;
  allreduce::ScheduleKind kind = allreduce::ScheduleKind::kRing;
  std::vector<int> hosts;  // by rank
  std::size_t segment_bytes = 0;
  double sum_time = 0;  // seconds a byte
  simulation::Fabric fabric;
  std::vector<std::size_t> lengths;
  std::vector<std::vector<Duration>> delays;  // by rank, before each sum
};

allreduce::RanksByHost by_host(const std::vector<int>& hosts) {
  allreduce::RanksByHost ranks(static_cast<std::size_t>(hosts.back()) + 1);
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    ranks[static_cast<std::size_t>(hosts[rank])].push_back(static_cast<int>(rank));
  }
  return ranks;
}

// Draws a case with one rank a host, or with up to `most` in one.
DrawnSums draw(std::mt19937& random, allreduce::ScheduleKind kind, int most = 1) {
  const auto between = [&](int least, int most) { return std::uniform_int_distribution<>(least, most)(random); };
  DrawnSums drawn{
      .ranks = between(2, 9), .kind = kind, .segment_bytes = static_cast<std::size_t>(between(0, 3)) * 4096};
  const int in_each = between(1, most);
  for (int rank = 0; rank < drawn.ranks; ++rank) drawn.hosts.push_back(rank / in_each);
  drawn.sum_time = between(0, 1) * 1e-10 * between(1, 9);
  drawn.fabric = {.hosts = drawn.hosts.back() + 1,
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

enum class Way { kMessages, kPlayed, kPriced };  // kPriced: rings where they can be

Outcome carry_out(const DrawnSums& drawn, NetworkModel model, Way way) {
  simulation::World world;
  world.set_seconds_per_byte(Processing::kSum, drawn.sum_time);
  const simulation::NetworkOptions network{.model = model, .links = {}};
  simulation::SimulatedWire wire(world, drawn.fabric, network, 3);
  const auto endpoints = wire.connect(drawn.hosts);
  const simulation::Link link = drawn.fabric.links().front();
  const allreduce::RingCosts costs{
      .ticks_on_link =
          [&](std::size_t bytes) {
            return *simulation::ticks_alone(network, link, link.latency, sizeof(allreduce::PartHeader) + 3 * bytes);
          },
      .ticks_of_latency = link.latency,
      .sum = [&](std::size_t bytes) { return from_seconds(drawn.sum_time * static_cast<double>(bytes)); }};
  std::optional<SimulatedSchedules::RingPrices> prices;
  if (way == Way::kPriced) prices = {.segment = drawn.segment_bytes / sizeof(float), .costs = costs};
  SimulatedSchedules schedules(world, wire, 0, drawn.ranks, prices);
  const auto ranks = static_cast<std::size_t>(drawn.ranks);
  Outcome outcome{.left = std::vector<std::vector<TimePoint>>(ranks),
                  .values = std::vector<std::vector<float>>(ranks),
                  .bytes = std::vector<std::int64_t>(2 * ranks)};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    world.start(fmt::format("rank {}", rank), [&, rank] {
      const auto collective = allreduce::make_schedule_collective(
          *endpoints[rank], {.kind = drawn.kind,
                             .segment_bytes = drawn.segment_bytes,
                             .ranks_by_host = by_host(drawn.hosts),
                             .clock = &world.clock(),
                             .player = way == Way::kMessages ? nullptr : &schedules});
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

void expect_alike(const Outcome& one, const Outcome& other) {
  EXPECT_EQ(one.left, other.left);
  EXPECT_EQ(one.values, other.values);
  EXPECT_EQ(one.bytes, other.bytes);
}

// By doubling both of a pair go on in the same nanosecond: whose part comes first to a link that both take is nobody's
// decision, and between ranks of one host it makes much of a difference.
void expect_alike_but_for_turns(const Outcome& one, const Outcome& other) {
  EXPECT_EQ(one.values, other.values);
  EXPECT_EQ(one.bytes, other.bytes);
  for (std::size_t rank = 0; rank < one.left.size(); ++rank) {
    for (std::size_t sum = 0; sum < one.left[rank].size(); ++sum) {
      const double time = seconds(one.left[rank][sum].time_since_epoch()) - 1.05;
      EXPECT_NEAR(seconds(other.left[rank][sum].time_since_epoch()) - 1.05, time, 0.02 * time);
    }
  }
}

// Whatever shares links: ranks of one host, the parts of several operations.
TEST(SimulatedSchedulesOfAnyKind, AreTheMessagesOnesToTheLastNanosecondAndBit) {
  std::mt19937 random(22);
  for (int i = 0; i < 12; ++i) {
    for (const allreduce::ScheduleKind kind : allreduce::kAllScheduleKinds) {
      const bool goes_in_step = kind == allreduce::ScheduleKind::kDoubling;
      const DrawnSums drawn = draw(random, kind, goes_in_step ? 1 : 3);
      SCOPED_TRACE(fmt::format("case {}: {} of {} ranks on {} hosts, segments of {} bytes, {} bytes/s", i,
                               allreduce::name_of(kind), drawn.ranks, drawn.fabric.hosts, drawn.segment_bytes,
                               drawn.fabric.bytes_per_second));
      for (const NetworkModel model : {NetworkModel::kFifo, NetworkModel::kFrames, NetworkModel::kFluid}) {
        const Outcome messages = carry_out(drawn, model, Way::kMessages),
                      played = carry_out(drawn, model, Way::kPlayed);
        if (goes_in_step) {
          expect_alike_but_for_turns(messages, played);
        } else {
          expect_alike(messages, played);
        }
      }
    }
  }
}

TEST(APricedRing, IsTheMessagesRingToTheLastNanosecondAndBit) {
  std::mt19937 random(20);
  for (int i = 0; i < 60; ++i) {
    const DrawnSums drawn = draw(random, allreduce::ScheduleKind::kRing);
    SCOPED_TRACE(fmt::format("case {}: {} ranks, segments of {} bytes, {} bytes/s", i, drawn.ranks, drawn.segment_bytes,
                             drawn.fabric.bytes_per_second));
    for (const NetworkModel model : {NetworkModel::kFifo, NetworkModel::kFrames}) {
      const Outcome messages = carry_out(drawn, model, Way::kMessages), priced = carry_out(drawn, model, Way::kPriced);
      expect_alike(messages, priced);
      EXPECT_LT(priced.events, messages.events);
    }
  }
}

TEST(APricedRing, IsWithinOnePercentOfAFluidNetwork) {
  std::mt19937 random(21);
  for (int i = 0; i < 20; ++i) {
    const DrawnSums drawn = draw(random, allreduce::ScheduleKind::kRing);
    const Outcome messages = carry_out(drawn, NetworkModel::kFluid, Way::kMessages);
    const Outcome priced = carry_out(drawn, NetworkModel::kFluid, Way::kPriced);
    EXPECT_EQ(messages.values, priced.values);
    for (std::size_t rank = 0; rank < messages.left.size(); ++rank) {
      const double whole = seconds(messages.left[rank].back().time_since_epoch()) - 1;
      EXPECT_NEAR(seconds(priced.left[rank].back().time_since_epoch()) - 1, whole, 0.01 * whole);
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments

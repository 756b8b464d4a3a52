#include "simulation/simulated_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "allreduce/collective/schedule_collective.h"
#include "common/transport/inproc_transport.h"
#include "tests/simulation/ten_gigabit.h"

namespace syncopate::simulation {
namespace {

using allreduce::ScheduleKind;

constexpr Duration kTimeout = std::chrono::seconds(10);
constexpr int kHeader = 32;  // bytes of a part's header

float gradient(int rank, std::size_t at) {
  return 0.1f * static_cast<float>(rank + 1) + 0.01f * static_cast<float>(at % 17);
}

// Sums the gradients of all ranks, of which `endpoint` is one.
std::vector<float> sum_on(Transport& endpoint, ScheduleKind kind, std::size_t elements, TimePoint deadline) {
  const auto collective = allreduce::make_schedule_collective(endpoint, {.kind = kind});
  const std::span<float> buffer = *collective->allocate(elements);
  for (std::size_t i = 0; i < elements; ++i) buffer[i] = gradient(endpoint.rank(), i);
  const Status status = collective->all_reduce(buffer, deadline);
  EXPECT_TRUE(status.ok()) << status.message();
  return {buffer.begin(), buffer.end()};
}

class OverASimulatedWire : public testing::Test {
 protected:
  void connect(std::span<const int> hosts, NetworkModel model = NetworkModel::kFrames, std::int64_t scale = 1,
               std::span<const std::size_t> processes = {}) {
    NetworkOptions options;
    options.model = model;
    endpoints_.clear();
    wire_ = std::make_unique<SimulatedWire>(world_, ten_gigabit(static_cast<int>(hosts.size())), options, scale);
    endpoints_ = wire_->connect(hosts, processes);
  }
  Transport& endpoint(int rank) { return *endpoints_[static_cast<std::size_t>(rank)]; }
  TimePoint in(Duration time) const { return world_.now() + time; }

  // Sums `elements` floats a rank by a schedule, once. Returns the seconds that it took, and leaves rank 0's sums.
  double all_reduce(ScheduleKind kind, int ranks, std::size_t elements) {
    const TimePoint begin = world_.now();
    TimePoint end = begin;
    for (int rank = 0; rank < ranks; ++rank) {
      world_.start("worker " + std::to_string(rank), [&, rank] {
        const std::vector<float> sums = sum_on(endpoint(rank), kind, elements, in(kTimeout));
        end = std::max(end, world_.now());
        if (rank == 0) sums_ = sums;
      });
    }
    EXPECT_TRUE(world_.run().ok());
    return seconds(end - begin);
  }

  World world_;
  std::unique_ptr<SimulatedWire> wire_;
  std::vector<std::unique_ptr<Transport>> endpoints_;
  std::vector<float> sums_;
};

// 2 (n - 1) steps, each of the latency and an n-th of the buffer, with its header (Patarasuk, Yuan 2009, "Bandwidth
// optimal all-reduce algorithms", section 4).
TEST_F(OverASimulatedWire, TheRingTakesItsTime) {
  for (const int ranks : {2, 8, 64}) {
    connect(one_each(ranks));
    constexpr int kBytes = 1 << 20;
    const double expected = 2 * (ranks - 1) * (seconds(kLatency) + (1.0 * kBytes / ranks + kHeader) / k10Gbit);
    EXPECT_NEAR(all_reduce(ScheduleKind::kRing, ranks, kBytes / sizeof(float)) / expected, 1, 1e-4) << ranks;
  }
}

// A 64th of the buffer that counts 64 times; headers count once.
TEST_F(OverASimulatedWire, ScaledPayloadsTakeTheTimeOfWholeOnes) {
  constexpr int kRanks = 8, kBytes = 1 << 20, kScale = 64;
  connect(one_each(kRanks));
  const double whole = all_reduce(ScheduleKind::kRing, kRanks, kBytes / sizeof(float));
  connect(one_each(kRanks), NetworkModel::kFrames, kScale);
  EXPECT_NEAR(all_reduce(ScheduleKind::kRing, kRanks, kBytes / sizeof(float) / kScale) / whole, 1, 1e-6);
}

TEST_F(OverASimulatedWire, SumsAreThoseOfRealThreadsToTheBit) {
  constexpr int kRanks = 6;
  constexpr std::size_t kElements = 1001;
  for (const ScheduleKind kind :
       {ScheduleKind::kDirect, ScheduleKind::kRing, ScheduleKind::kHalvingDoubling, ScheduleKind::kTree}) {
    connect(one_each(kRanks));
    all_reduce(kind, kRanks, kElements);
    InProcHub hub(kRanks);
    std::vector<std::unique_ptr<Transport>> endpoints;
    for (int rank = 0; rank < kRanks; ++rank) endpoints.push_back(hub.endpoint(rank));
    std::vector<float> sums;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        const std::vector<float> own =
            sum_on(*endpoints[static_cast<std::size_t>(rank)], kind, kElements, SteadyClock().now() + kTimeout);
        if (rank == 0) sums = own;
      });
    }
    threads.clear();
    EXPECT_EQ(sums_, sums) << name_of(kind);
  }
}

TEST_F(OverASimulatedWire, RepeatsExactly) {
  std::vector<std::pair<double, std::vector<float>>> results;
  for (int turn = 0; turn < 2; ++turn) {
    connect(one_each(6));
    const double time = all_reduce(ScheduleKind::kHalvingDoubling, 6, 5000);
    results.push_back({time, sums_});
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(OverASimulatedWire, APayloadMayBeChangedOnceItHasLeftItsHost) {
  connect(one_each(2));
  constexpr std::size_t kBytes = 1'250'000;  // 1 ms
  const TimePoint begin = world_.now();
  world_.start("sends", [&] {
    const std::span<std::byte> memory = *endpoint(0).allocate(kBytes);
    std::ranges::fill(memory, std::byte{7});
    PendingSends pending;
    EXPECT_TRUE(endpoint(0).send(1, "", memory, &pending, in(kLatency)).ok());
    EXPECT_FALSE(pending.none());
    EXPECT_EQ(endpoint(0).wait(pending, begin + kLatency).code(), Code::kDeadlineExceeded);
    EXPECT_TRUE(endpoint(0).wait(pending, in(std::chrono::seconds(1))).ok());
    EXPECT_EQ(world_.now(), begin + std::chrono::milliseconds(1));
    std::ranges::fill(memory, std::byte{9});
  });
  world_.start("receives", [&] {
    const Result<Message> message = endpoint(1).receive(in(std::chrono::seconds(1)));
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(world_.now(), begin + std::chrono::milliseconds(1) + kLatency);
    EXPECT_EQ(message->from(), 0);
    EXPECT_EQ(message->payload().size(), kBytes);
    EXPECT_THAT(message->payload(), testing::Each(std::byte{7}));
  });
  EXPECT_TRUE(world_.run().ok());
}

TEST_F(OverASimulatedWire, AReceiveEndsAtItsDeadlineOrWhenItIsInterrupted) {
  connect(one_each(2));
  const TimePoint begin = world_.now();
  world_.start("receives", [&] {
    EXPECT_EQ(endpoint(1).receive(begin + kLatency).status().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(world_.now(), begin + kLatency);
    EXPECT_EQ(endpoint(1).receive(TimePoint::max()).status().code(), Code::kCancelled);
    EXPECT_EQ(world_.now(), begin + 5 * kLatency);
  });
  world_.at(begin + 5 * kLatency, [&] { endpoint(1).interrupt(); });
  EXPECT_TRUE(world_.run().ok());
}

TEST_F(OverASimulatedWire, WhoSendsToAPeerThatIsGoneIsToldOnceItCanKnow) {
  connect(one_each(2));
  const TimePoint begin = world_.now();
  world_.start("sends", [&] {
    endpoints_[1].reset();
    EXPECT_TRUE(endpoint(0).send(1, "header", {}, nullptr, in(kLatency)).ok()) << "forgotten on its way";
    world_.sleep_until(begin + kLatency);
    EXPECT_EQ(endpoint(0).send(1, "header", {}, nullptr, in(kLatency)).code(), Code::kPeerLost);
  });
  EXPECT_TRUE(world_.run().ok());
}

// As over sockets, where others may still have last messages for each other.
TEST_F(OverASimulatedWire, AnEndpointThatLeavesInOrderIsMissedASecondLater) {
  connect(one_each(3));
  const TimePoint begin = world_.now();
  world_.start("receives", [&] {
    endpoints_[1].reset();
    EXPECT_EQ(endpoint(0).receive(TimePoint::max()).status().code(), Code::kPeerLost);
    EXPECT_EQ(world_.now(), begin + kLatency + std::chrono::seconds(1));
  });
  EXPECT_TRUE(world_.run().ok());
}

TEST_F(OverASimulatedWire, PeersOfAProcessThatIsKilledKnowAfterTheLatency) {
  const std::vector<std::size_t> processes{0, 1, 2};
  for (const NetworkModel model : {NetworkModel::kFifo, NetworkModel::kFrames, NetworkModel::kFluid}) {
    connect(one_each(3), model, 1, processes);
    const World::GroupId killed = world_.start_group("killed", [&] { endpoint(1).receive(TimePoint::max()).ok(); });
    const TimePoint kill = in(std::chrono::milliseconds(1));
    world_.at(kill, [&] {
      wire_->end_process(1);
      world_.kill(killed);
    });
    for (const int rank : {0, 2}) {
      world_.start("receives", [&, rank] {
        const Status status = endpoint(rank).receive(TimePoint::max()).status();
        EXPECT_EQ(status.code(), Code::kPeerLost);
        EXPECT_EQ(status.message(), "peer 1 is gone");
        EXPECT_EQ(world_.now(), kill + kLatency);
        EXPECT_EQ(endpoint(rank).receive(in(std::chrono::seconds(2))).status().code(), Code::kDeadlineExceeded);
      });
    }
    EXPECT_TRUE(world_.run().ok());
  }
}

// 1.25 MB take a millisecond, and half of them are still to be sent when their process is killed.
TEST_F(OverASimulatedWire, TheLossOfAKilledProcessIsToldBehindAllThatItHasSent) {
  const std::vector<std::size_t> processes{0, 1};
  for (const NetworkModel model : {NetworkModel::kFifo, NetworkModel::kFrames, NetworkModel::kFluid}) {
    connect(one_each(2), model, 1, processes);
    const TimePoint begin = world_.now();
    const World::GroupId killed = world_.start_group("killed", [&] {
      const std::span<std::byte> memory = *endpoint(1).allocate(1'250'000);
      std::ranges::fill(memory, std::byte{7});
      PendingSends pending;
      EXPECT_TRUE(endpoint(1).send(0, "last words", memory, &pending, in(kLatency)).ok());
      world_.sleep_until(begin + std::chrono::microseconds(500));
      wire_->end_process(1);
      std::ranges::fill(memory, std::byte{9});
      world_.kill(*world_.running_group());
    });
    EXPECT_NE(killed, 0u);
    world_.start("receives", [&] {
      const Result<Message> message = endpoint(0).receive(TimePoint::max());
      ASSERT_TRUE(message.ok());
      EXPECT_THAT(message->payload(), testing::Each(std::byte{7}));
      EXPECT_EQ(endpoint(0).receive(TimePoint::max()).status().code(), Code::kPeerLost);
      EXPECT_NEAR(seconds(world_.now() - begin), 1e-3 + seconds(kLatency), 1e-6);
    });
    EXPECT_TRUE(world_.run().ok());
  }
}

TEST_F(OverASimulatedWire, WhatNeedNotWaitIsDoneAlsoAfterAnInterrupt) {
  connect(one_each(2));
  world_.start("receives", [&] {
    EXPECT_TRUE(endpoint(1).send(0, "there", {}, nullptr, in(kLatency)).ok());
    world_.sleep_until(in(std::chrono::seconds(1)));
    endpoint(0).interrupt();
    EXPECT_TRUE(endpoint(0).wait(PendingSends(), in(kLatency)).ok());
    EXPECT_TRUE(endpoint(0).receive(in(kLatency)).ok());
    EXPECT_EQ(endpoint(0).receive(in(kLatency)).status().code(), Code::kCancelled);
  });
  EXPECT_TRUE(world_.run().ok());
}

TEST_F(OverASimulatedWire, WhatIsUnderWayToAPeerThatGoesIsForgotten) {
  connect(one_each(2));
  world_.start("sends", [&] {
    PendingSends pending;
    const std::span<std::byte> memory = *endpoint(0).allocate(1 << 20);
    EXPECT_TRUE(endpoint(0).send(1, "", memory, &pending, in(kLatency)).ok());
    endpoints_[1].reset();
    EXPECT_TRUE(endpoint(0).wait(pending, in(std::chrono::seconds(1))).ok());
  });
  EXPECT_TRUE(world_.run().ok());
}

// Eight workers on two hosts: what stays on a host does not take its interface.
TEST_F(OverASimulatedWire, WorkersOfOneHostShareItsInterface) {
  const std::vector<int> hosts{0, 0, 0, 0, 1, 1, 1, 1};
  connect(hosts);
  const TimePoint begin = world_.now();
  TimePoint last = begin;
  for (int rank = 0; rank < 4; ++rank) {
    world_.start("sends", [&, rank] {
      const std::span<std::byte> memory = *endpoint(rank).allocate(1'250'000);
      EXPECT_TRUE(endpoint(rank).send(rank + 4, "", memory, nullptr, in(kLatency)).ok());
    });
    world_.start("receives", [&, rank] {
      EXPECT_TRUE(endpoint(rank + 4).receive(TimePoint::max()).ok());
      last = std::max(last, world_.now());
    });
  }
  EXPECT_TRUE(world_.run().ok());
  EXPECT_NEAR(seconds(last - begin), 4e-3 + seconds(kLatency), 1e-5);
}

}  // namespace
}  // namespace syncopate::simulation

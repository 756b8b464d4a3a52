// The properties of a ring allreduce. Each test is a point.
#include "docs/course/exercises/ring/ring.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/schedule_simulation.h"

namespace syncopate::course {
namespace {

using allreduce::Schedule;
using testing_support::for_all_ranks;
using testing_support::ScheduleSimulation;
using testing_support::SimulatedWire;

std::vector<Schedule> ring(int size, std::size_t length) {
  return for_all_ranks(size, [&](int rank) { return ring_schedule(rank, size, length); });
}

// Sums of these are exact, and no other choice of ranks has the same.
double whole(int rank, std::size_t i) { return std::ldexp(1.0, rank) + static_cast<double>(i % 3); }
// Sums of these depend on the order of their terms.
double uneven(int rank, std::size_t i) {
  return std::ldexp(1.0 / (1.0 + static_cast<double>(i % 7)), (rank * 5 + static_cast<int>(i)) % 11);
}

ScheduleSimulation simulation_of(int size, std::size_t length, double (*element)(int, std::size_t),
                                 const SimulatedWire& wire = {}) {
  std::vector<ScheduleSimulation::Buffer> buffers(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < length; ++i) buffers[static_cast<std::size_t>(rank)].push_back(element(rank, i));
  }
  return {ring(size, length), std::move(buffers), wire};
}

void expect_sums(int size, std::size_t length, const SimulatedWire& wire = {}) {
  SCOPED_TRACE(testing::Message() << size << " ranks, " << length << " elements");
  ScheduleSimulation simulation = simulation_of(size, length, whole, wire);
  ASSERT_TRUE(simulation.run()) << "some rank waits forever, or receives another part than the one that was sent to it";
  for (int rank = 0; rank < size; ++rank) {
    const auto& buffer = simulation.buffers()[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_EQ(buffer[i], std::ldexp(1.0, size) - 1 + static_cast<double>(size) * static_cast<double>(i % 3))
          << "rank " << rank << ", element " << i;
    }
  }
}

TEST(Ring, EachRankSendsToItsRightAndReceivesFromItsLeft) {
  for (int size : {2, 3, 8}) {
    for (int rank = 0; rank < size; ++rank) {
      const Schedule schedule = ring_schedule(rank, size, 64);
      ASSERT_FALSE(schedule.empty()) << "rank " << rank << " does nothing";
      for (const allreduce::ScheduleStep& step : schedule) {
        if (step.send) EXPECT_EQ(step.send->peer, (rank + 1) % size) << "rank " << rank << " of " << size;
        if (step.receive) EXPECT_EQ(step.receive->peer, (rank + size - 1) % size) << "rank " << rank << " of " << size;
      }
    }
  }
}

TEST(Ring, TwoRanksEndWithTheSum) { expect_sums(2, 64); }

TEST(Ring, AnyNumberOfRanksEndsWithTheSum) {
  for (int size = 1; size <= 17 && !HasFatalFailure(); ++size) expect_sums(size, 16 * static_cast<std::size_t>(size));
  ASSERT_FALSE(ring_schedule(0, 2, 64).empty());
}

TEST(Ring, LengthsNeedNotDivide) {
  for (const std::size_t length : {0u, 1u, 5u, 100u, 531u}) {
    for (const int size : {2, 3, 7, 8}) {
      if (!HasFatalFailure()) expect_sums(size, length);
    }
  }
}

// Adding in another order on another rank would round differently, and replicas would drift apart.
TEST(Ring, AllRanksEndWithTheSameBits) {
  for (const int size : {2, 3, 5, 8}) {
    ScheduleSimulation simulation = simulation_of(size, 401, uneven);
    ASSERT_TRUE(simulation.run());
    for (const auto& buffer : simulation.buffers()) ASSERT_EQ(buffer, simulation.buffers().front());
    ASSERT_NE(simulation.buffers().front()[0], uneven(0, 0)) << "nothing was added";
  }
}

// Parts come late, one rank is slow, and what was sent is read as late as possible, or as early.
TEST(Ring, AnyOrderOfDeliveryEndsWithTheSum) {
  for (const SimulatedWire::Reads reads : {SimulatedWire::Reads::kWhenSent, SimulatedWire::Reads::kWhenReceived}) {
    for (std::uint64_t seed = 0; seed < 20 && !HasFatalFailure(); ++seed) {
      expect_sums(6, 96, {.reads = reads, .seed = seed, .slowest = static_cast<int>(seed % 7) - 1});
    }
  }
}

// 2 (p - 1) / p of the buffer: the least that any allreduce can do with (Patarasuk and Yuan 2009, theorem 1).
TEST(Ring, EachRankSendsTheLeastThatIsPossible) {
  for (const std::size_t size : {2u, 4u, 8u, 16u}) {
    const std::size_t length = 60 * size;
    ScheduleSimulation simulation = simulation_of(static_cast<int>(size), length, whole);
    ASSERT_TRUE(simulation.run());
    for (const std::size_t sent : simulation.sent_elements()) EXPECT_EQ(sent, 2 * (size - 1) * length / size);
  }
}

// As many messages follow each other as a ring needs: with more, the link's delay would count more often.
TEST(Ring, EachRankSendsTwiceAsManyMessagesAsItHasPeers) {
  for (const std::size_t size : {2u, 3u, 8u}) {
    ScheduleSimulation simulation = simulation_of(static_cast<int>(size), 60 * size, whole);
    ASSERT_TRUE(simulation.run());
    for (const std::size_t sent : simulation.sent_messages()) EXPECT_EQ(sent, 2 * (size - 1));
  }
}

}  // namespace
}  // namespace syncopate::course

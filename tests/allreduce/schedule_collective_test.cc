#include <gtest/gtest.h>

#include <thread>

#include "allreduce/collective.h"
#include "common/transport/faulty_transport.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

class RingCollective : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, RingCollective, testing::ValuesIn(testing_support::all_wires()),
                         [](const auto& wire) { return wire.param; });

// Runs body(collective) on every rank of a group.
void with_ring(const std::string& wire, int size, const std::function<void(Collective&)>& body) {
  auto group = connect_group(wire, size);
  run_ranks(size, [&](int rank) { body(*make_ring_collective(*group[static_cast<std::size_t>(rank)])); });
}

TEST_P(RingCollective, SumsEveryLengthExactlyOverAnyNumberOfRanks) {
  for (int size : {1, 2, 3, 4, 7}) {
    with_ring(GetParam(), size, [&](Collective& ring) {
      for (std::size_t length : {1u, 16u, 1000u, 70001u}) {
        Result<std::span<float>> buffer = ring.allocate(length);
        ASSERT_TRUE(buffer.ok());
        for (int round = 0; round < 3; ++round) {
          for (std::size_t i = 0; i < length; ++i) (*buffer)[i] = static_cast<float>(ring.rank() + 1 + i % 5 + round);
          const Status status = ring.all_reduce(*buffer, soon());
          ASSERT_TRUE(status.ok()) << status.message();
          for (std::size_t i = 0; i < length; ++i) {
            const auto rank_sum = static_cast<float>(size * (size + 1) / 2);
            ASSERT_EQ((*buffer)[i], rank_sum + static_cast<float>(size) * static_cast<float>(i % 5 + round));
          }
        }
      }
    });
  }
}

TEST_P(RingCollective, BroadcastsFromAnyRoot) {
  with_ring(GetParam(), 5, [&](Collective& ring) {
    Result<std::span<float>> buffer = ring.allocate(1000);
    ASSERT_TRUE(buffer.ok());
    for (int root = 0; root < 5; ++root) {
      std::fill(buffer->begin(), buffer->end(), static_cast<float>(ring.rank()));
      ASSERT_TRUE(ring.broadcast(*buffer, root, soon()).ok());
      for (float value : *buffer) ASSERT_EQ(value, static_cast<float>(root));
      ASSERT_TRUE(ring.barrier(soon()).ok());
    }
  });
}

TEST_P(RingCollective, EndsAtTheDeadlineWhenARankIsSilentAndNamesIt) {
  with_ring(GetParam(), 3, [&](Collective& ring) {
    Result<std::span<float>> buffer = ring.allocate(100);
    ASSERT_TRUE(buffer.ok());
    if (ring.rank() == 2) return;
    const Status status = ring.all_reduce(*buffer, SteadyClock().now() + std::chrono::milliseconds(200));
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
    // Rank 0 waits for rank 2 itself; rank 1 for rank 0, which waits.
    EXPECT_NE(status.message().find(ring.rank() == 0 ? "rank 2" : "rank 0"), std::string::npos) << status.message();
  });
}

TEST_P(RingCollective, IsInterruptedFromAnotherThread) {
  auto group = connect_group(GetParam(), 2);
  auto ring = make_ring_collective(*group[0]);
  Result<std::span<float>> buffer = ring->allocate(100);
  ASSERT_TRUE(buffer.ok());
  std::jthread interrupter([&] { ring->interrupt(); });
  EXPECT_EQ(ring->all_reduce(*buffer, soon()).code(), Code::kCancelled);
}

TEST(RingCollectiveChecks, TellsWhenRanksDisagreeOnTheLength) {
  with_ring("inproc", 2, [&](Collective& ring) {
    Result<std::span<float>> buffer = ring.allocate(ring.rank() == 0 ? 64 : 128);
    ASSERT_TRUE(buffer.ok());
    const Status status = ring.all_reduce(*buffer, soon());
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find("ranks disagree"), std::string::npos);
  });
}

TEST(RingCollectiveChecks, SurvivesDelayedMessagesAndEndsInTimeWhenOneIsLost) {
  auto group = connect_group("inproc", 2);
  std::vector<std::unique_ptr<FaultyTransport>> faulty;
  for (auto& endpoint : group) {
    faulty.push_back(std::make_unique<FaultyTransport>(
        std::move(endpoint), FaultPlan{.delay = 1.0, .delayed_by = std::chrono::milliseconds(2)}));
  }
  run_ranks(2, [&](int rank) {
    FaultyTransport& wire = *faulty[static_cast<std::size_t>(rank)];
    auto ring = make_ring_collective(wire);
    Result<std::span<float>> buffer = ring->allocate(64);
    ASSERT_TRUE(buffer.ok());
    std::fill(buffer->begin(), buffer->end(), 1.0f);
    ASSERT_TRUE(ring->all_reduce(*buffer, soon()).ok());
    EXPECT_EQ((*buffer)[63], 2.0f);
    wire.cut(1 - rank);
    EXPECT_EQ(ring->all_reduce(*buffer, SteadyClock().now() + std::chrono::milliseconds(100)).code(),
              Code::kDeadlineExceeded);
  });
}

}  // namespace
}  // namespace syncopate::allreduce

#include "allreduce/collective/schedule_collective.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/transport/faulty_transport.h"
#include "tests/support/cluster.h"
#include "tests/support/collective_halves.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

class ScheduleCollectiveTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, ScheduleCollectiveTest, testing::ValuesIn(testing_support::all_wires()),
                         [](const auto& wire) { return wire.param; });

// Runs body(collective) on every rank of a group.
void with_collective(const std::string& wire, int size, const ScheduleOptions& options,
                     const std::function<void(Collective&)>& body) {
  auto group = connect_group(wire, size);
  run_ranks(size, [&](int rank) { body(*make_schedule_collective(*group[static_cast<std::size_t>(rank)], options)); });
}
void with_ring(const std::string& wire, int size, const std::function<void(Collective&)>& body) {
  with_collective(wire, size, {}, body);
}

void sum_every_length(Collective& collective, std::initializer_list<std::size_t> lengths) {
  const int size = collective.size();
  for (std::size_t length : lengths) {
    Result<std::span<float>> buffer = collective.allocate(length);
    ASSERT_TRUE(buffer.ok());
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < length; ++i) {
        (*buffer)[i] = static_cast<float>(collective.rank() + 1 + static_cast<int>(i % 5) + round);
      }
      const Status status = collective.all_reduce(*buffer, soon());
      ASSERT_TRUE(status.ok()) << status.message();
      for (std::size_t i = 0; i < length; ++i) {
        const int expected = size * (size + 1) / 2 + size * (static_cast<int>(i % 5) + round);
        ASSERT_EQ((*buffer)[i], static_cast<float>(expected)) << "element " << i << " of " << length;
      }
    }
  }
}

TEST_P(ScheduleCollectiveTest, SumsEveryLengthExactlyOverAnyNumberOfRanks) {
  for (int size : {1, 2, 3, 4, 7}) {
    with_ring(GetParam(), size, [&](Collective& ring) { sum_every_length(ring, {1u, 16u, 1000u, 70001u}); });
  }
}

TEST_P(ScheduleCollectiveTest, SumsByEverySchedule) {
  for (const ScheduleKind kind : kAllScheduleKinds) {
    for (const std::size_t segment_bytes : {0u, 8192u}) {
      for (int size = 2; size <= 5; ++size) {
        SCOPED_TRACE(testing::Message() << name_of(kind) << ", segments of " << segment_bytes << " bytes, " << size
                                        << " ranks");
        with_collective(GetParam(), size, {.kind = kind, .segment_bytes = segment_bytes}, [&](Collective& collective) {
          EXPECT_STREQ(collective.name(), name_of(kind));
          sum_every_length(collective, {5u, 20001u});
        });
      }
    }
  }
}

TEST_P(ScheduleCollectiveTest, SumsAcrossHostsOfDifferentNumbersOfRanks) {
  const ScheduleOptions options{
      .kind = ScheduleKind::kHierarchical, .segment_bytes = 16384, .ranks_by_host = {{0, 3}, {1, 2, 4}}};
  with_collective(GetParam(), 5, options, [](Collective& collective) { sum_every_length(collective, {5u, 70001u}); });
}

TEST_P(ScheduleCollectiveTest, SumsByHalves) {
  for (const ScheduleKind kind : {ScheduleKind::kRing, ScheduleKind::kDirect}) {
    for (int size : {1, 2, 3, 5}) {
      with_collective(GetParam(), size, {.kind = kind, .segment_bytes = 8192},
                      [](Collective& collective) { testing_support::expect_sums_by_halves(collective, 20001); });
    }
  }
}

// Ranks 0 and 1, 2 and 3, ... and then others: each pair at its own pace, between operations of all ranks.
TEST_P(ScheduleCollectiveTest, SumsThePairsThatAreFormed) {
  with_ring(GetParam(), 5, [&](Collective& collective) {
    constexpr std::size_t kLength = 20000;
    Result<std::span<float>> buffer = collective.allocate(kLength);
    ASSERT_TRUE(buffer.ok());
    const std::vector<std::pair<int, int>> pairs = {{0, 1}, {2, 3}, {1, 2}, {1, 2}, {4, 0}, {3, 1}, {4, 2}};
    for (int round = 0; round < 3; ++round) {
      // Every rank follows all ranks' values.
      std::vector<float> values = {1, 10, 100, 1000, 10000};
      std::fill(buffer->begin(), buffer->end(), values[static_cast<std::size_t>(collective.rank())]);
      for (const auto& [one, other] : pairs) {
        float& a = values[static_cast<std::size_t>(one)];
        float& b = values[static_cast<std::size_t>(other)];
        a = b = a + b;
        if (collective.rank() != one && collective.rank() != other) continue;
        const Status status = collective.reduce_pair(*buffer, collective.rank() == one ? other : one, soon());
        ASSERT_TRUE(status.ok()) << status.message();
        for (float value : *buffer) ASSERT_EQ(value, a);
      }
      ASSERT_TRUE(collective.barrier(soon()).ok());
    }
  });
}

TEST_P(ScheduleCollectiveTest, BroadcastsFromAnyRoot) {
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

TEST_P(ScheduleCollectiveTest, EndsAtTheDeadlineWhenARankIsSilentAndNamesIt) {
  with_ring(GetParam(), 3, [&](Collective& ring) {
    Result<std::span<float>> buffer = ring.allocate(100);
    ASSERT_TRUE(buffer.ok());
    if (ring.rank() == 2) return;
    const Status status = ring.all_reduce(*buffer, SteadyClock().now() + std::chrono::milliseconds(200));
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
    // Rank 0 waits for rank 2 itself; rank 1 for rank 0, which waits.
    EXPECT_NE(status.message().find(ring.rank() == 0 ? "rank 2" : "rank 0"), std::string::npos) << status.message();
    EXPECT_EQ(ring.missed(), ring.rank() == 0 ? 2 : 0);
  });
}

TEST_P(ScheduleCollectiveTest, SaysFromAnyThreadWhomItWaitsFor) {
  auto group = connect_group(GetParam(), 3);
  const auto collective = make_schedule_collective(*group[1]);
  EXPECT_EQ(collective->waiting_for(), -1);
  Result<std::span<float>> buffer = collective->allocate(100);
  ASSERT_TRUE(buffer.ok());
  std::jthread watcher([&] {
    const TimePoint deadline = soon();
    while (collective->waiting_for() != 0 && SteadyClock().now() < deadline) std::this_thread::yield();
    EXPECT_EQ(collective->waiting_for(), 0);
    collective->interrupt();
  });
  EXPECT_EQ(collective->all_reduce(*buffer, soon()).code(), Code::kCancelled);
  watcher.join();
  EXPECT_EQ(collective->waiting_for(), -1);
}

TEST_P(ScheduleCollectiveTest, IsInterruptedFromAnotherThread) {
  auto group = connect_group(GetParam(), 2);
  auto ring = make_schedule_collective(*group[0]);
  Result<std::span<float>> buffer = ring->allocate(100);
  ASSERT_TRUE(buffer.ok());
  std::jthread interrupter([&] { ring->interrupt(); });
  EXPECT_EQ(ring->all_reduce(*buffer, soon()).code(), Code::kCancelled);
}

TEST(ScheduleCollectiveChecks, TellsWhenRanksDisagreeOnTheLength) {
  with_ring("inproc", 2, [&](Collective& ring) {
    Result<std::span<float>> buffer = ring.allocate(ring.rank() == 0 ? 64 : 128);
    ASSERT_TRUE(buffer.ok());
    const Status status = ring.all_reduce(*buffer, soon());
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find("ranks disagree"), std::string::npos);
  });
}

TEST(ScheduleCollectiveChecks, NamesTheRankThatDoesNotTakeWhatWasSentToIt) {
  for (const char* wire : {"inproc", "shm"}) {
    auto group = connect_group(wire, 2);
    const auto root = make_schedule_collective(*group[0]);
    Result<std::span<float>> buffer = root->allocate(64);
    ASSERT_TRUE(buffer.ok());
    const Status status = root->broadcast(*buffer, 0, SteadyClock().now() + std::chrono::milliseconds(50));
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_NE(status.message().find("waiting for rank 1"), std::string::npos) << status.message();
  }
}

TEST(ScheduleCollectiveChecks, TellsWhenOneRankReducesAPairAndItsPartnerTheWholeGroup) {
  with_ring("inproc", 2, [&](Collective& ring) {
    Result<std::span<float>> buffer = ring.allocate(64);
    ASSERT_TRUE(buffer.ok());
    const Status status = ring.rank() == 0 ? ring.reduce_pair(*buffer, 1, soon()) : ring.all_reduce(*buffer, soon());
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find("ranks disagree"), std::string::npos) << status.message();
  });
}

TEST(ScheduleCollectiveChecks, RefusesAPairThatIsNone) {
  with_ring("inproc", 2, [&](Collective& ring) {
    for (int partner : {-1, 2, ring.rank()}) {
      EXPECT_EQ(ring.reduce_pair({}, partner, soon()).code(), Code::kInvalidArgument);
    }
  });
}

TEST(ScheduleCollectiveChecks, DropsPartsThatComeAgainAndCountsThem) {
  auto group = connect_group("shm", 2);
  run_ranks(2, [&](int rank) {
    FaultyTransport wire(std::move(group[static_cast<std::size_t>(rank)]), FaultPlan{.duplicate = 1.0});
    auto ring = make_schedule_collective(wire);
    Result<std::span<float>> buffer = ring->allocate(64);
    ASSERT_TRUE(buffer.ok());
    for (int step = 0; step < 5; ++step) {
      std::fill(buffer->begin(), buffer->end(), static_cast<float>(step));
      ASSERT_TRUE(ring->all_reduce(*buffer, soon()).ok());
      EXPECT_EQ((*buffer)[63], 2.0f * static_cast<float>(step));
      ASSERT_TRUE(ring->reduce_pair(*buffer, 1 - rank, soon()).ok());
      EXPECT_EQ((*buffer)[63], 4.0f * static_cast<float>(step));
    }
    EXPECT_GT(ring->counters().dropped, 5);
    ASSERT_TRUE(ring->barrier(soon()).ok());
  });
}

TEST(ScheduleCollectiveChecks, SurvivesDelayedMessagesAndEndsInTimeWhenOneIsLost) {
  auto group = connect_group("inproc", 2);
  std::vector<std::unique_ptr<FaultyTransport>> faulty;
  for (auto& endpoint : group) {
    faulty.push_back(std::make_unique<FaultyTransport>(
        std::move(endpoint), FaultPlan{.delay = 1.0, .delayed_by = std::chrono::milliseconds(2)}));
  }
  run_ranks(2, [&](int rank) {
    FaultyTransport& wire = *faulty[static_cast<std::size_t>(rank)];
    auto ring = make_schedule_collective(wire);
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

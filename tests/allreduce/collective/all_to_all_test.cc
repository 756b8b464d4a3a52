// Collective::all_to_all over every wire and in shared memory. MPI's: mpi_collective_test.cc.
#include <gtest/gtest.h>

#include <thread>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"

namespace syncopate::allreduce {
namespace {

using testing_support::run_ranks;
using testing_support::soon;

std::vector<std::string> all_ways() {
  std::vector<std::string> ways = testing_support::all_wires();
  ways.emplace_back("direct");
  return ways;
}

class AllToAll : public testing::TestWithParam<std::string> {
 protected:
  // Runs body(collective) on every rank of a group.
  static void with_collective(int size, const std::function<void(Collective&)>& body) {
    if (GetParam() == "direct") {
      const std::vector<std::unique_ptr<Collective>> group = testing_support::connect_direct(size);
      run_ranks(size, [&](int rank) { body(*group[static_cast<std::size_t>(rank)]); });
    } else {
      const auto wires = testing_support::connect_group(GetParam(), size);
      run_ranks(size, [&](int rank) { body(*make_schedule_collective(*wires[static_cast<std::size_t>(rank)])); });
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Wire, AllToAll, testing::ValuesIn(all_ways()), [](const auto& way) { return way.param; });

std::span<std::byte> memory_of(Collective& collective, std::size_t bytes) {
  Result<std::span<float>> memory = collective.allocate((bytes + 3) / 4);
  EXPECT_TRUE(memory.ok());
  return std::as_writable_bytes(*memory).first(bytes);
}

// What rank `from` gives rank `to` in a round. Some lengths are zero, few are multiples of four.
std::size_t length_of(std::size_t from, std::size_t to, std::size_t round) {
  return (from * 3 + to * 5 + round) % 4 * (round % 2 == 0 ? 7u : 30'011u);
}
std::byte byte_of(std::size_t from, std::size_t to, std::size_t round, std::size_t i) {
  return static_cast<std::byte>(from * 97 + to * 31 + round * 11 + i);
}

TEST_P(AllToAll, GivesEachRankWhatIsMeantForItWhateverTheLengths) {
  for (int size = 1; size <= 5; ++size) {
    with_collective(size, [&](Collective& collective) {
      const auto count = static_cast<std::size_t>(size), own = static_cast<std::size_t>(collective.rank());
      constexpr std::size_t kMost = 3 * 30'011;
      const std::span<std::byte> sides[2] = {memory_of(collective, count * kMost),
                                             memory_of(collective, count * kMost)};
      std::vector<Bytes> given(count), taken(count);
      for (std::size_t round = 0; round < 12; ++round) {
        for (std::size_t to = 0; to < count; ++to) {
          const std::span<std::byte> bytes = sides[round % 2].subspan(to * kMost, length_of(own, to, round));
          for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(own, to, round, i);
          given[to] = bytes;
        }
        const Status status = collective.all_to_all(given, taken, soon());
        ASSERT_TRUE(status.ok()) << status.message();
        for (std::size_t from = 0; from < count; ++from) {
          ASSERT_EQ(taken[from].size(), length_of(from, own, round)) << "from " << from;
          for (std::size_t i = 0; i < taken[from].size(); ++i) {
            ASSERT_EQ(taken[from][i], byte_of(from, own, round, i)) << "byte " << i << " from " << from;
          }
        }
        if (round % 3 == 2) {
          ASSERT_TRUE(collective.barrier(soon()).ok());
        }
      }
    });
  }
}

TEST_P(AllToAll, GathersWhereAllAreGivenTheSame) {
  with_collective(3, [](Collective& collective) {
    const std::span<std::byte> own = memory_of(collective, 4);
    std::ranges::fill(own, static_cast<std::byte>(collective.rank() + 1));
    const std::vector<Bytes> given(3, own);
    std::vector<Bytes> taken(3);
    ASSERT_TRUE(collective.all_to_all(given, taken, soon()).ok());
    for (std::size_t from = 0; from < 3; ++from) {
      EXPECT_EQ(std::vector(taken[from].begin(), taken[from].end()), std::vector(4, static_cast<std::byte>(from + 1)));
    }
    EXPECT_EQ(collective.counters().payload_bytes_out, 8);
    EXPECT_EQ(collective.counters().payload_bytes_in, 8);
    ASSERT_TRUE(collective.barrier(soon()).ok());
  });
}

TEST_P(AllToAll, TakesTurnsWithOtherOperations) {
  with_collective(3, [](Collective& collective) {
    Result<std::span<float>> numbers = collective.allocate(5000);
    ASSERT_TRUE(numbers.ok());
    const std::span<std::byte> sides[2] = {memory_of(collective, 100'000), memory_of(collective, 100'000)};
    for (std::size_t round = 0; round < 20; ++round) {
      const std::span<std::byte> side = sides[round % 2];
      std::ranges::fill(side, static_cast<std::byte>(10 * collective.rank() + static_cast<int>(round)));
      const std::vector<Bytes> given(3, side);
      std::vector<Bytes> taken(3);
      ASSERT_TRUE(collective.all_to_all(given, taken, soon()).ok());
      for (std::size_t from = 0; from < 3; ++from) {
        ASSERT_EQ(taken[from].back(), static_cast<std::byte>(10 * from + round));
      }
      std::ranges::fill(*numbers, 1.0f);
      ASSERT_TRUE(collective.all_reduce(*numbers, soon()).ok());
      ASSERT_EQ(numbers->back(), 3.0f);
      if (collective.rank() < 2) {
        ASSERT_TRUE(collective.reduce_pair(*numbers, 1 - collective.rank(), soon()).ok());
      }
    }
  });
}

TEST_P(AllToAll, EndsAtTheDeadlineAndNamesTheRankThatHasNotCome) {
  with_collective(3, [](Collective& collective) {
    const std::vector<Bytes> given(3, memory_of(collective, 100));
    std::vector<Bytes> taken(3);
    if (collective.rank() == 2) return;
    const Status status = collective.all_to_all(given, taken, SteadyClock().now() + std::chrono::milliseconds(200));
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
    EXPECT_NE(status.message().find("waiting for rank 2"), std::string::npos) << status.message();
  });
}

TEST_P(AllToAll, IsInterruptedFromAnotherThread) {
  with_collective(2, [](Collective& collective) {
    if (collective.rank() == 1) return;
    const std::vector<Bytes> given(2);
    std::vector<Bytes> taken(2);
    std::jthread interrupter([&] { collective.interrupt(); });
    EXPECT_EQ(collective.all_to_all(given, taken, soon()).code(), Code::kCancelled);
  });
}

TEST_P(AllToAll, TellsWhenAnotherRankIsInAnotherOperation) {
  with_collective(2, [](Collective& collective) {
    Result<std::span<float>> numbers = collective.allocate(5000);
    ASSERT_TRUE(numbers.ok());
    const std::vector<Bytes> given(2, std::as_bytes(*numbers));
    std::vector<Bytes> taken(2);
    const Status status =
        collective.rank() == 0 ? collective.all_to_all(given, taken, soon()) : collective.all_reduce(*numbers, soon());
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find("ranks disagree"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("all_to_all"), std::string::npos) << status.message();
  });
}

TEST(AllToAllInSharedMemory, RefusesMemoryThatIsNotItsOwn) {
  const std::vector<std::unique_ptr<Collective>> group = testing_support::connect_direct(2);
  const std::vector<std::byte> foreign(10);
  const std::vector<Bytes> given(2, foreign);
  std::vector<Bytes> taken(2);
  EXPECT_EQ(group[0]->all_to_all(given, taken, soon()).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::allreduce

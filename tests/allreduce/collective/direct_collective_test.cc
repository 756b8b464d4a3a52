#include "allreduce/collective/direct_collective.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "common/random.h"
#include "tests/support/cluster.h"
#include "tests/support/collective_halves.h"
#include "tests/support/direct_group.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/test_keys.h"

namespace syncopate::allreduce {
namespace {

using testing_support::run_ranks;
using testing_support::soon;

const std::string& run_id() {  // of this process and those that it forks
  static const std::string id = fmt::format("test-{}", getpid());
  return id;
}

TransportOptions member(int rank, int size) {
  return {.run_id = run_id(), .group = "direct", .rank = rank, .size = size, .keys = testing_support::test_keys()};
}

// Runs body(collective) on every rank, each a thread.
void with_direct(int size, const std::function<void(Collective&)>& body) {
  const std::vector<std::unique_ptr<Collective>> group = testing_support::connect_direct(size);
  run_ranks(size, [&](int rank) { body(*group[static_cast<std::size_t>(rank)]); });
}

// Returns values of very different sizes, so that sums depend on the order; exact products.
float drawn(int rank, std::size_t i, int round) {
  Random random(static_cast<std::uint64_t>(rank) * 7919 + i * 13 + static_cast<std::uint64_t>(round));
  return static_cast<float>(random.below(100000)) * (random.below(2) == 0 ? 0x1p-16f : 0x1p16f);
}

TEST(DirectCollective, SumsInTheOrderOfRanksOnEveryRank) {
  for (int size : {1, 2, 3, 4, 7}) {
    with_direct(size, [&](Collective& direct) {
      // Lengths on both sides of where it changes its way, aligned to nothing.
      for (std::size_t length : {1u, 16u, 2047u, 2048u, 2049u, 7001u}) {
        Result<std::span<float>> arena = direct.allocate(length + 32);
        ASSERT_TRUE(arena.ok());
        const std::span<float> buffer = arena->subspan(16, length);
        for (int round = 0; round < 3; ++round) {
          std::ranges::fill(*arena, -1.0f);
          for (std::size_t i = 0; i < length; ++i) buffer[i] = drawn(direct.rank(), i, round);
          const Status status = direct.all_reduce(buffer, soon());
          ASSERT_TRUE(status.ok()) << status.message();
          for (std::size_t i = 0; i < length; ++i) {
            float expected = drawn(0, i, round);
            for (int rank = 1; rank < size; ++rank) expected += drawn(rank, i, round);
            ASSERT_EQ(buffer[i], expected) << size << " ranks, " << length << " elements, element " << i;
          }
          for (std::size_t i : {0ul, 15ul, length + 16, length + 31}) ASSERT_EQ((*arena)[i], -1.0f);
        }
      }
    });
  }
}

TEST(DirectCollective, SumsByHalves) {
  for (int size : {1, 2, 3, 4, 7}) {
    with_direct(size, [](Collective& direct) {
      for (const std::size_t length : {1u, 100u, 2049u, 20001u}) testing_support::expect_sums_by_halves(direct, length);
    });
  }
}

TEST(DirectCollective, CountsWhatAnAllreduceMustMove) {
  with_direct(4, [](Collective& direct) {
    Result<std::span<float>> buffer = direct.allocate(4000);
    ASSERT_TRUE(direct.all_reduce(*buffer, soon()).ok());
    EXPECT_EQ(direct.counters().payload_bytes_out, 2 * 3 * 16000 / 4);
    EXPECT_EQ(direct.counters().payload_bytes_in, 2 * 3 * 16000 / 4);
  });
}

TEST(DirectCollective, SumsPairsWhileOthersDoOtherThings) {
  with_direct(5, [](Collective& direct) {
    Result<std::span<float>> buffer = direct.allocate(5000);
    ASSERT_TRUE(buffer.ok());
    // Rank 4 stays alone; in the second round everybody has another partner.
    for (const std::vector<int>& partners : {std::vector{1, 0, 3, 2, 4}, std::vector{3, 2, 1, 0, 4}}) {
      std::ranges::fill(*buffer, static_cast<float>(direct.rank() + 1));
      const int partner = partners[static_cast<std::size_t>(direct.rank())];
      if (partner == direct.rank()) continue;
      const Status status = direct.reduce_pair(*buffer, partner, soon());
      ASSERT_TRUE(status.ok()) << status.message();
      for (float value : *buffer) ASSERT_EQ(value, static_cast<float>(direct.rank() + partner + 2));
    }
    ASSERT_TRUE(direct.barrier(soon()).ok());
  });
}

TEST(DirectCollective, RefusesPartnersThatThereAreNot) {
  with_direct(2, [](Collective& direct) {
    Result<std::span<float>> buffer = direct.allocate(100);
    ASSERT_TRUE(buffer.ok());
    for (int partner : {-1, 2, direct.rank()}) {
      EXPECT_EQ(direct.reduce_pair(*buffer, partner, soon()).code(), Code::kInvalidArgument) << partner;
    }
  });
}

TEST(DirectCollective, BroadcastsFromAnyRoot) {
  with_direct(5, [](Collective& direct) {
    Result<std::span<float>> buffer = direct.allocate(3000);
    ASSERT_TRUE(buffer.ok());
    for (int root = 0; root < 5; ++root) {
      std::ranges::fill(*buffer, static_cast<float>(direct.rank()));
      ASSERT_TRUE(direct.broadcast(*buffer, root, soon()).ok());
      for (float value : *buffer) ASSERT_EQ(value, static_cast<float>(root));
    }
  });
}

TEST(DirectCollective, LetsNobodyLeaveABarrierBeforeEverybodyHasEntered) {
  std::atomic<int> entered{0};
  with_direct(4, [&](Collective& direct) {
    for (int round = 1; round <= 50; ++round) {
      ++entered;
      ASSERT_TRUE(direct.barrier(soon()).ok());
      ASSERT_GE(entered.load(), 4 * round);
    }
  });
}

TEST(DirectCollective, EndsAtTheDeadlineAndNamesTheRankThatHasNotCome) {
  with_direct(3, [](Collective& direct) {
    Result<std::span<float>> buffer = direct.allocate(10000);
    ASSERT_TRUE(buffer.ok());
    if (direct.rank() == 2) return;
    const Status status = direct.all_reduce(*buffer, SteadyClock().now() + std::chrono::milliseconds(200));
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
    EXPECT_NE(status.message().find("waiting for rank 2"), std::string::npos) << status.message();
  });
}

TEST(DirectCollective, IsInterruptedFromAnotherThread) {
  with_direct(2, [](Collective& direct) {
    if (direct.rank() == 1) return;
    Result<std::span<float>> buffer = direct.allocate(100);
    ASSERT_TRUE(buffer.ok());
    std::jthread interrupter([&] { direct.interrupt(); });
    EXPECT_EQ(direct.all_reduce(*buffer, soon()).code(), Code::kCancelled);
  });
}

TEST(DirectCollective, TellsWhenRanksDisagreeOnWhatTheyDo) {
  with_direct(2, [](Collective& direct) {
    Result<std::span<float>> buffer = direct.allocate(8000);
    ASSERT_TRUE(buffer.ok());
    const Status status = direct.all_reduce(buffer->first(direct.rank() == 0 ? 4000 : 8000), soon());
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find("elements 0 to 4000"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("elements 0 to 8000"), std::string::npos) << status.message();
  });
}

TEST(DirectCollective, RefusesMemoryThatIsNotItsOwn) {
  with_direct(2, [](Collective& direct) {
    std::vector<float> own(100);
    EXPECT_EQ(direct.all_reduce(own, soon()).code(), Code::kInvalidArgument);
  });
}

TEST(DirectCollective, ShowsWhereABufferOfAnotherRankLies) {
  with_direct(3, [](Collective& collective) {
    auto& direct = dynamic_cast<DirectCollective&>(collective);
    Result<std::span<float>> first = direct.allocate(100), second = direct.allocate(5000);
    ASSERT_TRUE(first.ok() && second.ok());
    std::ranges::fill(*second, static_cast<float>(direct.rank()));
    ASSERT_TRUE(direct.barrier(soon()).ok());
    for (int rank = 0; rank < 3; ++rank) {
      const Result<std::span<float>> there = direct.buffer_of(rank, second->subspan(10, 20));
      ASSERT_TRUE(there.ok()) << there.status().message();
      ASSERT_EQ(there->size(), 20u);
      for (const float value : *there) ASSERT_EQ(value, static_cast<float>(rank));
    }
    EXPECT_EQ(direct.buffer_of(direct.rank(), *first)->data(), first->data());
    EXPECT_EQ(direct.buffer_of(0, std::vector<float>(8)).status().code(), Code::kInvalidArgument);
  });
}

TEST(DirectCollective, TellsWhenAProcessIsGone) {
  // Rank 1 dies between two operations; rank 0 must hear of it long before its deadline.
  run_id();
  const std::vector<std::vector<double>> told =
      testing_support::run_forked_ranks(2, [](int rank, Rendezvous& rendezvous) {
        auto direct = make_direct_collective(member(rank, 2), rendezvous, soon());
        if (!direct.ok()) return std::vector<double>{-1};
        Result<std::span<float>> buffer = (*direct)->allocate(5000);
        if (!(*direct)->all_reduce(*buffer, soon()).ok()) return std::vector<double>{-2};
        if (rank == 1) return std::vector<double>{0};
        return std::vector<double>{static_cast<double>((*direct)->all_reduce(*buffer, soon()).code())};
      });
  EXPECT_EQ(told[0][0], static_cast<double>(Code::kPeerLost));
}

}  // namespace
}  // namespace syncopate::allreduce

#include "allreduce/collective/shared_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing::ElementsAre;
using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

TEST(SharedWords, AreTheSameAtAllRanksToTheLastBit) {
  const auto group = connect_group("inproc", 3);
  run_ranks(3, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const std::uint64_t own[] = {UINT64_MAX - static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(rank)};
    const auto said = share_words(*ring, own, soon());
    ASSERT_TRUE(said.ok()) << said.status().message();
    EXPECT_THAT(
        *said, ElementsAre(ElementsAre(UINT64_MAX, 0), ElementsAre(UINT64_MAX - 1, 1), ElementsAre(UINT64_MAX - 2, 2)));
  });
}

// Also where their number is no power of two.
TEST(SharedWords, AreThoseOfEveryRankOfAGroupOfAnySize) {
  for (int size = 1; size <= 9; ++size) {
    const auto group = connect_group("inproc", size);
    run_ranks(size, [&](int rank) {
      const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
      for (int again = 0; again < 2; ++again) {
        const std::uint64_t own[] = {static_cast<std::uint64_t>(100 * again + rank)};
        const auto said = share_words(*ring, own, soon());
        ASSERT_TRUE(said.ok()) << said.status().message();
        ASSERT_EQ(said->size(), static_cast<std::size_t>(size));
        for (std::size_t other = 0; other < said->size(); ++other) {
          EXPECT_THAT((*said)[other], ElementsAre(100 * static_cast<std::uint64_t>(again) + other));
        }
      }
    });
  }
}

// Rank 1 sends what share_words() would never write: the conversion to a whole number would be undefined.
TEST(SharedWords, ThatAreNoWholeNumbersOfTheirSizeAreRefused) {
  for (const float value : {0.5f, -1.0f, 65536.0f, 1e30f, INFINITY, NAN}) {
    const auto group = connect_group("inproc", 2);
    run_ranks(2, [&](int rank) {
      const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
      if (rank == 0) {
        const std::uint64_t own[] = {7};
        EXPECT_EQ(share_words(*ring, own, soon()).status().code(), Code::kDataLoss) << value;
        return;
      }
      const Result<std::span<float>> words = ring->allocate(8);  // a word takes 4 floats
      ASSERT_TRUE(words.ok());
      (*words)[5] = value;
      ASSERT_TRUE(ring->reduce_pair(*words, 0, soon()).ok());
    });
  }
}

}  // namespace
}  // namespace syncopate::allreduce

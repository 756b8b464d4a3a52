#include "experiments/lab/compare/round_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace syncopate::experiments {
namespace {

using testing::UnorderedElementsAre;

TEST(RoundOrder, RunsEveryRowOnceInEveryRound) {
  for (std::size_t round = 0; round < 20; ++round) {
    EXPECT_THAT(round_order(4, 7, round), UnorderedElementsAre(0, 1, 2, 3));
  }
}

TEST(RoundOrder, IsTheSameForTheSameSeedAndAnotherInOtherRounds) {
  std::set<std::vector<std::size_t>> orders, of_another_seed;
  for (std::size_t round = 0; round < 20; ++round) {
    EXPECT_EQ(round_order(6, 7, round), round_order(6, 7, round));
    orders.insert(round_order(6, 7, round));
    of_another_seed.insert(round_order(6, 8, round));
  }
  EXPECT_GT(orders.size(), 15u);
  EXPECT_NE(orders, of_another_seed);
}

// With 3000 draws an order of three comes 500 times in the mean, with a deviation of 20.
TEST(RoundOrder, MakesEveryOrderAsLikely) {
  std::vector<std::vector<std::size_t>> drawn;
  for (std::size_t round = 0; round < 3000; ++round) drawn.push_back(round_order(3, 1, round));
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    EXPECT_NEAR(static_cast<double>(std::ranges::count(drawn, order)), 500, 120);
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace syncopate::experiments

#include "allreduce/strategy/gossip_pairs.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace syncopate::allreduce {
namespace {

TEST(GossipPairs, PutEveryRankInOnePairAndOneOfAnOddNumberInNone) {
  for (int size = 1; size <= 9; ++size) {
    for (std::int64_t round = 0; round < 200; ++round) {
      const std::vector<int> partners = gossip_pairs(7, round, size);
      ASSERT_EQ(partners.size(), static_cast<std::size_t>(size));
      int alone = 0;
      for (int rank = 0; rank < size; ++rank) {
        const int partner = partners[static_cast<std::size_t>(rank)];
        ASSERT_TRUE(partner >= 0 && partner < size);
        ASSERT_EQ(partners[static_cast<std::size_t>(partner)], rank) << "round " << round << " of " << size;
        alone += partner == rank ? 1 : 0;
      }
      EXPECT_EQ(alone, size % 2);
    }
  }
}

TEST(GossipPairs, AreTheSameOnAllRanksAndOthersInOtherRoundsAndUnderOtherSeeds) {
  std::set<std::vector<int>> seen;
  for (std::int64_t round = 0; round < 50; ++round) {
    EXPECT_EQ(gossip_pairs(1, round, 16), gossip_pairs(1, round, 16));
    seen.insert(gossip_pairs(1, round, 16));
    seen.insert(gossip_pairs(2, round, 16));
  }
  EXPECT_EQ(seen.size(), 100u) << "of about two million matchings";
}

// 15 matchings of 6 ranks: 3000 rounds draw each 200 times, give or take 14.
TEST(GossipPairs, AreAllDrawnAboutEquallyOften) {
  std::map<std::vector<int>, int> drawn;
  for (std::int64_t round = 0; round < 3000; ++round) ++drawn[gossip_pairs(1, round, 6)];
  EXPECT_EQ(drawn.size(), 15u);
  for (const auto& [partners, times] : drawn) {
    EXPECT_GT(times, 130);
    EXPECT_LT(times, 270);
  }
}

TEST(GossipPairs, LetEverybodyMeetEverybodyAndEverybodyStayAloneNowAndThen) {
  std::set<std::pair<int, int>> met;
  for (std::int64_t round = 0; round < 200; ++round) {
    const std::vector<int> partners = gossip_pairs(3, round, 5);
    for (int rank = 0; rank < 5; ++rank) met.insert({rank, partners[static_cast<std::size_t>(rank)]});
  }
  EXPECT_EQ(met.size(), 25u);
}

// Five values, of which one is not averaged in each round: what they are apart never grows, and its square is halved by
// a round in the mean.
TEST(GossipPairs, BringAllTogetherWhereTheyAverageTheirValues) {
  std::vector<double> values = {0, 0, 0, 0, 100};
  const auto apart = [&] {
    double sum = 0;
    for (const double value : values) sum += (value - 20) * (value - 20);
    return sum;
  };
  const double before = apart();
  for (std::int64_t round = 0; round < 40; ++round) {
    const double last = apart();
    const std::vector<int> partners = gossip_pairs(1, round, 5);
    const std::vector<double> old = values;
    for (std::size_t i = 0; i < 5; ++i) values[i] = (old[i] + old[static_cast<std::size_t>(partners[i])]) / 2;
    EXPECT_LE(apart(), last);
  }
  EXPECT_LT(apart(), 1e-6 * before);
}

}  // namespace
}  // namespace syncopate::allreduce

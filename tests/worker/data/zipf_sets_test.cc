#include "worker/data/zipf_sets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/worker/data/recommender_data.h"

namespace syncopate::worker {
namespace {

TEST(ZipfRank, DrawsRanksAsOftenAsItsLawSays) {
  constexpr int kDrawn = 200'000, kCount = 50;
  Random random(1);
  std::map<std::int64_t, double> drawn;
  for (int i = 0; i < kDrawn; ++i) drawn[zipf_rank(random, kCount)] += 1.0 / kDrawn;
  ASSERT_EQ(drawn.begin()->first, 0);
  ASSERT_EQ(drawn.rbegin()->first, kCount - 1);
  for (const auto& [rank, share] : drawn) {
    const double expected = std::log1p(1 / (static_cast<double>(rank) + 1)) / std::log(kCount + 1.0);
    EXPECT_NEAR(share, expected, 5 * std::sqrt(expected / kDrawn)) << rank;
  }
}

TEST(ZipfRank, OfOneIsTheFirst) {
  Random random(1);
  EXPECT_EQ(zipf_rank(random, 1), 0);
}

struct Case {
  const char* name;
  DatasetPair (*make)(const ZipfCounts&, std::uint64_t);
};

class ZipfSets : public testing::TestWithParam<Case> {
 protected:
  static DatasetPair make(const ZipfCounts& counts, std::uint64_t seed = 3) { return GetParam().make(counts, seed); }
};

TEST_P(ZipfSets, ArePureFunctionsOfSeedAndIndex) {
  const DatasetPair pair = make({.rows = 1000}), again = make({.rows = 1000}), other = make({.rows = 1000}, 4);
  EXPECT_EQ(pair.train->size(), 60'000);
  EXPECT_EQ(pair.test->size(), 10'000);
  int differs = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(sample_of(*pair.train, 99 - i), sample_of(*again.train, 99 - i));
    differs += sample_of(*pair.train, i) != sample_of(*other.train, i);
    differs += sample_of(*pair.train, i) != sample_of(*pair.test, i);
  }
  EXPECT_GT(differs, 190);
}

TEST_P(ZipfSets, KeepWithinTheirForm) {
  for (std::int64_t rows : {1, 2, 17, 10'000'000}) {
    const DatasetPair pair = make({.rows = rows});
    for (std::int64_t i = 0; i < 200; ++i) {
      const Sample sample = sample_of(*pair.train, i);
      EXPECT_TRUE(sample.labels[0] == 0 || sample.labels[0] == 1);
      for (int id : sample.ids) {
        ASSERT_GE(id, 0);
        ASSERT_LT(id, rows);
      }
    }
  }
}

TEST_P(ZipfSets, DrawPopularRowsOften) {
  const DatasetPair pair = make({.rows = 100'000});
  std::map<int, int> drawn;
  for (std::int64_t i = 0; i < 10'000; ++i) drawn[sample_of(*pair.train, i).ids.front()] += 1;
  int most = 0;
  for (const auto& [row, count] : drawn) most = std::max(most, count);
  EXPECT_NEAR(most, 10'000 * std::log(2.0) / std::log(100'001.0), 120);
  EXPECT_GT(drawn.size(), 2000u);
}

// Labels are drawn with the very probabilities whose entropy is the best loss: samples of one and the same user and
// item are rare, so what can be seen is the loss of who knows how likely a label is in each class of certainty.
TEST_P(ZipfSets, HaveABestLossBetweenCertaintyAndChance) {
  const DatasetPair pair = make({.rows = 1000});
  ASSERT_TRUE(pair.test->best_loss().has_value());
  EXPECT_GT(*pair.test->best_loss(), 0.2);
  EXPECT_LT(*pair.test->best_loss(), 0.65);
  double positives = 0;
  for (std::int64_t i = 0; i < 2000; ++i) positives += sample_of(*pair.test, i).labels[0] / 2000.0;
  EXPECT_NEAR(positives, 0.5, 0.15);
}

TEST(ZipfRatings, HaveTheEntropyOfTheirOnlyPairAsBestLoss) {
  const DatasetPair pair = make_zipf_ratings({.rows = 1, .train = 1, .test = 40'000}, 3);
  double positives = 0;
  for (std::int64_t i = 0; i < pair.test->size(); ++i) positives += sample_of(*pair.test, i).labels[0];
  const double p = positives / static_cast<double>(pair.test->size());
  EXPECT_NEAR(*pair.test->best_loss(), -p * std::log(p) - (1 - p) * std::log(1 - p), 0.01);
}

INSTANTIATE_TEST_SUITE_P(Both, ZipfSets,
                         testing::Values(Case{"ratings", make_zipf_ratings}, Case{"clicks", make_zipf_clicks}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace syncopate::worker

#include "worker/recommender/row_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "common/random.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

TEST(RowLookup, NamesEachRowOnceAndSaysWhoAsksForIt) {
  RowLookup lookup;
  lookup.set(std::vector<int>{7, 2, 7, 0, 2, 7});
  EXPECT_THAT(lookup.keys(), ElementsAre(0, 2, 7));
  EXPECT_THAT(lookup.places(), ElementsAre(2, 1, 2, 0, 1, 2));
  EXPECT_THAT(lookup.askers(0), ElementsAre(3));
  EXPECT_THAT(lookup.askers(1), ElementsAre(1, 4));
  EXPECT_THAT(lookup.askers(2), ElementsAre(0, 2, 5));
}

TEST(RowLookup, IsRightForIdsOfAnySize) {
  RowLookup lookup;
  Random random(5);
  for (const std::uint64_t range : {1ull, 2ull, 2048ull, 2049ull, 1ull << 22, (1ull << 22) + 1, 1ull << 31}) {
    std::vector<int> ids(3000);
    for (int& id : ids) id = static_cast<int>(random.below(range));
    ids[17] = static_cast<int>(range - 1);
    lookup.set(ids);  // the same object: nothing of the last batch may be left
    const std::set<RowKey> expected(ids.begin(), ids.end());
    ASSERT_THAT(lookup.keys(), ElementsAreArray(expected)) << range;
    std::size_t askers = 0;
    for (std::size_t row = 0; row < lookup.keys().size(); ++row) {
      EXPECT_TRUE(std::ranges::is_sorted(lookup.askers(row)));
      for (const std::uint32_t i : lookup.askers(row)) {
        ASSERT_EQ(static_cast<RowKey>(ids[i]), lookup.keys()[row]);
        ASSERT_EQ(lookup.places()[i], row);
      }
      askers += lookup.askers(row).size();
    }
    EXPECT_EQ(askers, ids.size());
  }
}

TEST(RowLookup, TakesBatchesThatGrowAndShrink) {
  RowLookup lookup;
  lookup.set(std::vector<int>{5, 3, 1, 9});
  lookup.set(std::vector<int>{4});
  EXPECT_THAT(lookup.keys(), ElementsAre(4));
  EXPECT_THAT(lookup.places(), ElementsAre(0));
  lookup.set(std::vector<int>{4, 8});
  EXPECT_THAT(lookup.keys(), ElementsAre(4, 8));
}

}  // namespace
}  // namespace syncopate::worker

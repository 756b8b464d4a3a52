#include "ps/tables/key_lists.h"

#include <gtest/gtest.h>

#include <map>

namespace syncopate::ps {
namespace {

std::vector<RowKey> list_of(int number) { return {static_cast<RowKey>(number), 100000}; }

TEST(KeyLists, SendsAListOnce) {
  KeyLists lists;
  const KeyLists::Place first = lists.place(list_of(1));
  EXPECT_FALSE(first.known);
  const KeyLists::Place again = lists.place(list_of(1));
  EXPECT_TRUE(again.known);
  EXPECT_EQ(again.slot, first.slot);
}

TEST(KeyLists, TakesListsForEqualOnlyIfTheyAre) {
  KeyLists lists;
  lists.place(std::vector<RowKey>{1, 2, 3});
  EXPECT_FALSE(lists.place(std::vector<RowKey>{1, 2}).known);
  EXPECT_FALSE(lists.place(std::vector<RowKey>{1, 2, 4}).known);
  EXPECT_FALSE(lists.place({}).known);
  EXPECT_TRUE(lists.place({}).known);
  EXPECT_TRUE(lists.place(std::vector<RowKey>{1, 2, 3}).known);
}

TEST(KeyLists, FindsEveryListOfACycleThatFits) {
  KeyLists lists;
  for (int pass = 0; pass < 3; ++pass) {
    for (int i = 0; i < static_cast<int>(kKeyListSlots); ++i) {
      EXPECT_EQ(lists.place(list_of(i)).known, pass > 0);
    }
  }
}

TEST(KeyLists, FindsSomeListsOfACycleThatDoesNotFit) {
  KeyLists lists;
  constexpr int kCycle = 2 * kKeyListSlots, kPasses = 50;
  int found = 0;
  for (int i = 0; i < kPasses * kCycle; ++i) found += lists.place(list_of(i % kCycle)).known ? 1 : 0;
  EXPECT_GT(found, kPasses * kCycle / 10);
}

// What the shards hold, by the account of one who only follows what is said.
TEST(KeyLists, SaysTheSameAsWhatTheShardsHoldAndNeverOverwritesTheLastList) {
  KeyLists lists;
  Random random(7);
  std::map<std::size_t, std::vector<RowKey>> held;
  std::size_t last = kKeyListSlots;
  for (int i = 0; i < 5000; ++i) {
    const std::vector<RowKey> keys = list_of(static_cast<int>(random.below(40)));
    const KeyLists::Place place = lists.place(keys);
    ASSERT_LT(place.slot, kKeyListSlots);
    if (place.known) {
      ASSERT_EQ(held[place.slot], keys);
    } else {
      ASSERT_NE(place.slot, last);
      held[place.slot] = keys;
    }
    last = place.slot;
  }
}

}  // namespace
}  // namespace syncopate::ps

#include "common/param_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace syncopate {
namespace {

using testing::ElementsAre;

ParamLayout three_tensors() {
  ParamLayout layout;
  layout.add("a", {4, 8});   // [0, 32)
  layout.add("b", {5});      // [32, 37), padded to 48
  layout.add("c", {16, 4});  // [48, 112)
  return layout;
}

TEST(ParamLayout, PlacesTensorsOnCacheLinesInOrder) {
  const ParamLayout layout = three_tensors();
  EXPECT_EQ(layout.tensors()[0].range, (Range{0, 32}));
  EXPECT_EQ(layout.tensors()[1].range, (Range{32, 37}));
  EXPECT_EQ(layout.tensors()[2].range, (Range{48, 112}));
  EXPECT_EQ(layout.size(), 112u);
  EXPECT_EQ(layout.parameter_count(), 32u + 5u + 64u);
}

TEST(ParamLayout, HashTellsNamesShapesAndOrderApart) {
  const std::uint64_t hash = three_tensors().hash();
  EXPECT_EQ(hash, three_tensors().hash());
  ParamLayout renamed, reshaped;
  renamed.add("a", {4, 8}), renamed.add("B", {5}), renamed.add("c", {16, 4});
  reshaped.add("a", {8, 4}), reshaped.add("b", {5}), reshaped.add("c", {16, 4});
  EXPECT_NE(hash, renamed.hash());
  EXPECT_NE(hash, reshaped.hash());
}

TEST(ParamLayout, HasRoomForOneStepsRowsOfATable) {
  ParamLayout layout;
  layout.add_table("users", 1'000'000, 3, {.rows_a_step = 7, .limit = 0.5f});  // [0, 21), padded to 32
  layout.add_table("items", 100, 16, {.rows_a_step = 2, .limit = 0.5f});       // [32, 64)
  layout.add("a", {4, 8});                                                     // [64, 96)
  ASSERT_EQ(layout.tables().size(), 2u);
  EXPECT_EQ(layout.tables()[0].range, (Range{0, 21}));
  EXPECT_EQ(layout.tables()[1].range, (Range{32, 64}));
  EXPECT_EQ(layout.dense(), (Range{64, 96}));
  EXPECT_EQ(layout.parameter_count(), 3'000'000u + 1600u + 32u);
  EXPECT_THAT(buckets_in_backward_order(layout, 1 << 20), ElementsAre(Range{64, 96}, Range{32, 64}, Range{0, 32}));
  ParamLayout other;
  other.add_table("users", 1'000'000, 3, {.rows_a_step = 7, .limit = 0.25f});
  other.add_table("items", 100, 16, {.rows_a_step = 2, .limit = 0.5f});
  other.add("a", {4, 8});
  EXPECT_NE(layout.hash(), other.hash());
  EXPECT_EQ(three_tensors().dense(), (Range{0, 112}));
}

TEST(ParamLayout, LeavesEachPartAtItsPlace) {
  ParamLayout layout;
  layout.add_table("users", 100, 3, {.rows_a_step = 7, .limit = 0.5f});   // [0, 21), padded to 32
  layout.add_table("items", 100, 16, {.rows_a_step = 2, .limit = 0.5f});  // [32, 64)
  layout.add("a", {4, 8});                                                // [64, 96)
  layout.add("b", {5});                                                   // [96, 101), padded to 112
  const ParamLayout tables = layout.selection({true, true}, false), rest = layout.selection({false, false}, true);
  EXPECT_THAT(tables.tensors(), ElementsAre(layout.tensors()[0], layout.tensors()[1]));
  EXPECT_EQ(tables.tables().size(), 2u);
  EXPECT_EQ(tables.size(), 64u);
  EXPECT_EQ(tables.dense(), (Range{64, 64}));
  EXPECT_THAT(rest.tensors(), ElementsAre(layout.tensors()[2], layout.tensors()[3]));
  EXPECT_TRUE(rest.tables().empty());
  EXPECT_EQ(rest.size(), 112u);
  EXPECT_EQ(rest.dense(), (Range{64, 112}));
  EXPECT_THAT(buckets_in_backward_order(rest, 1 << 20), ElementsAre(Range{64, 112}));
  EXPECT_EQ(std::set({layout.hash(), tables.hash(), rest.hash()}).size(), 3u);
}

TEST(ParamLayout, KeepsATablesNumberAndItsOwnBucketBesideOnesThatAreLeftOut) {
  ParamLayout layout;
  layout.add_table("users", 100, 3, {.rows_a_step = 7, .limit = 0.5f});   // [0, 21), padded to 32
  layout.add_table("items", 100, 16, {.rows_a_step = 2, .limit = 0.5f});  // [32, 64)
  layout.add("a", {4, 8});                                                // [64, 96)
  EXPECT_EQ(layout.selection({true, true}, true).hash(), layout.hash());
  const ParamLayout users = layout.selection({true, false}, true), items = layout.selection({false, true}, false);
  ASSERT_EQ(users.tables().size(), 1u);
  ASSERT_EQ(items.tables().size(), 1u);
  EXPECT_EQ(users.tables()[0].table->number, 0u);
  EXPECT_EQ(items.tables()[0].table->number, 1u);
  EXPECT_THAT(buckets_in_backward_order(users, 1 << 20), ElementsAre(Range{64, 96}, Range{0, 32}));
  EXPECT_THAT(buckets_in_backward_order(items, 1 << 20), ElementsAre(Range{32, 64}));
  EXPECT_FALSE(items.empty());
  EXPECT_TRUE(layout.selection({false, false}, false).empty());
}

TEST(Buckets, RunFromTheLastTensorToTheFirstAndFillUpToTheLimit) {
  const ParamLayout layout = three_tensors();
  EXPECT_THAT(buckets_in_backward_order(layout, 4), ElementsAre(Range{48, 112}, Range{32, 48}, Range{0, 32}));
  EXPECT_THAT(buckets_in_backward_order(layout, 80 * 4), ElementsAre(Range{32, 112}, Range{0, 32}));
  EXPECT_THAT(buckets_in_backward_order(layout, 1 << 20), ElementsAre(Range{0, 112}));
}

TEST(BalancedRanges, CoverEverythingAlignedAndWithinOneUnit) {
  for (std::size_t size : {0u, 1u, 15u, 16u, 17u, 100u, 1000u, 4096u}) {
    for (std::size_t count : {1u, 2u, 3u, 7u, 33u}) {
      const std::vector<Range> ranges = balanced_ranges(size, count);
      ASSERT_EQ(ranges.size(), count);
      std::size_t expected_begin = 0;
      for (const Range& range : ranges) {
        EXPECT_EQ(range.begin, expected_begin);
        EXPECT_TRUE(range.size() == 0 || range.begin % kAlignment == 0);
        EXPECT_LE(range.size(), size / count + kAlignment);
        expected_begin = range.end;
      }
      EXPECT_EQ(expected_begin, size);
    }
  }
}

TEST(ParamLayout, HasAPartAtThePlacesOfTheWhole) {
  const ParamLayout layout = three_tensors();
  const std::vector<TensorSpec>& tensors = layout.tensors();
  const Range second{tensors[1].range.begin, tensors[2].range.begin}, third{tensors[2].range.begin, layout.size()};
  const ParamLayout middle = layout.part(std::vector{second}), rest = layout.part(std::vector{second, third});
  EXPECT_THAT(middle.tensors(), ElementsAre(tensors[1]));
  EXPECT_EQ(middle.size(), layout.size());
  EXPECT_EQ(middle.dense(), (Range{tensors[1].range.begin, tensors[2].range.begin}));
  EXPECT_EQ(rest.dense(), (Range{tensors[1].range.begin, layout.size()}));
  EXPECT_EQ(layout.part(std::vector{layout.dense()}).tensors(), layout.tensors());
  EXPECT_THAT(rest.dense_places(), ElementsAre(rest.dense()));
  EXPECT_NE(middle.hash(), rest.hash());
  EXPECT_THAT(buckets_in_backward_order(middle, 1), ElementsAre(middle.dense()));
  EXPECT_THAT(buckets_in_backward_order(rest, 1),
              ElementsAre(Range{tensors[2].range.begin, layout.size()}, middle.dense()));
}

TEST(ParamLayout, HasAPartWithAGapThatIsInNoBucket) {
  const ParamLayout layout = three_tensors();
  const std::vector<TensorSpec>& tensors = layout.tensors();
  const Range first{0, tensors[1].range.begin}, last{tensors[2].range.begin, layout.size()};
  const ParamLayout outer = layout.part(std::vector{first, last});
  EXPECT_THAT(outer.tensors(), ElementsAre(tensors[0], tensors[2]));
  EXPECT_EQ(outer.dense(), layout.dense());
  EXPECT_THAT(outer.dense_places(), ElementsAre(first, last));
  EXPECT_THAT(buckets_in_backward_order(outer, 1 << 20), ElementsAre(last, first));
}

TEST(BackwardProgress, ReportsABucketOnceAllTensorsThatTouchItAreReady) {
  const ParamLayout layout = three_tensors();
  BackwardProgress progress(layout, {Range{64, 112}, Range{40, 64}, Range{0, 40}});
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<std::size_t> ready;
    const auto note = [&](std::size_t bucket) { ready.push_back(bucket); };
    progress.begin();
    progress.tensor_ready(2, note);
    EXPECT_THAT(ready, ElementsAre(0));
    progress.tensor_ready(1, note);
    EXPECT_THAT(ready, ElementsAre(0, 1));
    progress.tensor_ready(0, note);
    EXPECT_THAT(ready, ElementsAre(0, 1, 2));
  }
}

}  // namespace
}  // namespace syncopate

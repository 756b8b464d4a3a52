#include "common/optimizer/decay_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/random.h"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DecayParts, LeaveOutTensorsOfOneDimensionWithThePaddingBetweenThem) {
  ParamLayout layout;
  layout.add("conv", {3, 3, 4});  // 0 to 36, then padding
  layout.add("scale", {4});       // from 48
  layout.add("shift", {4});       // 64 to 68
  layout.add("dense", {2, 16});   // 80 to 112
  layout.add("bias", {2});        // 112 to 114
  EXPECT_THAT(undecayed_ranges(layout), ElementsAre(Range{48, 68}, Range{112, 114}));
}

TEST(DecayParts, OfTablesAreNone) {
  ParamLayout layout;
  layout.add_table("rows", 100, 1, {.rows_a_step = 4});
  layout.add("weight", {2, 2});
  EXPECT_THAT(undecayed_ranges(layout), IsEmpty());
}

TEST(DecayParts, AreCountedFromTheBeginningOfAPart) {
  const std::vector<Range> ranges{{10, 20}, {30, 40}, {50, 60}};
  EXPECT_THAT(ranges_within(ranges, {15, 55}), ElementsAre(Range{0, 5}, Range{15, 25}, Range{35, 40}));
  EXPECT_THAT(ranges_within(ranges, {20, 30}), IsEmpty());
  EXPECT_THAT(ranges_within(ranges, {0, 100}), ElementsAre(Range{10, 20}, Range{30, 40}, Range{50, 60}));
}

// Against a flag for each element.
TEST(DecayParts, CoverARangeOnceInOrderWithTheFlagOfEachElement) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<Range> undecayed;
    std::vector<bool> decays(100, true);
    for (std::size_t at = random.below(10); at < 90;) {
      const std::size_t end = at + 1 + random.below(9);
      undecayed.push_back({at, end});
      for (std::size_t i = at; i < end; ++i) decays[i] = false;
      at = end + random.below(20);  // they may touch
    }
    const std::size_t begin = random.below(100), end = begin + random.below(100 - begin + 1);
    std::size_t next = begin;
    for_each_decay_part(undecayed, {begin, end}, [&](Range part, bool does) {
      EXPECT_EQ(part.begin, next);
      EXPECT_LT(part.begin, part.end);
      for (std::size_t i = part.begin; i < part.end; ++i) EXPECT_EQ(decays[i], does) << i;
      next = part.end;
    });
    EXPECT_EQ(next, end);
  }
}

}  // namespace
}  // namespace syncopate

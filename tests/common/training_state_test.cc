#include "common/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> numbers(std::size_t begin, std::size_t end) {
  std::vector<float> values(end - begin);
  std::iota(values.begin(), values.end(), static_cast<float>(begin));
  return values;
}

TEST(TrainingState, IsReadInOtherPiecesThanItWasPut) {
  TrainingState state;
  state.put("weights", 6, numbers(6, 10));
  state.put("weights", 0, numbers(0, 6));
  EXPECT_THAT(state.pieces("weights"), ElementsAre(Range{0, 6}, Range{6, 10}));
  std::vector<float> read(5);
  ASSERT_TRUE(state.read("weights", {3, 8}, read).ok());
  EXPECT_EQ(read, numbers(3, 8));
}

TEST(TrainingState, SaysWhatIsMissing) {
  TrainingState state;
  state.put("weights", 0, numbers(0, 4));
  state.put("weights", 5, numbers(5, 8));
  EXPECT_TRUE(state.covers("weights", {5, 8}));
  EXPECT_FALSE(state.covers("weights", {3, 6}));
  std::vector<float> read(8);
  const Status status = state.read("weights", {0, 8}, read);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("weights of the arena's elements 0 to 8"));
  EXPECT_FALSE(state.read("residual.worker1", {0, 8}, read).ok());
}

TEST(TrainingState, ForgetsEverythingButItsMemory) {
  TrainingState state;
  state.step = 7;
  state.counts["clocks"] = {1, 2};
  state.rows[0] = {2, {5}, {1, 2}};
  const float* const memory = state.piece("weights", {0, 4}).data();
  state.clear();
  EXPECT_EQ(state.step, 0);
  EXPECT_EQ(state.bytes(), 0u);
  EXPECT_TRUE(state.names().empty());
  EXPECT_TRUE(state.counts.empty());
  EXPECT_TRUE(state.rows.empty());
  EXPECT_EQ(state.piece("weights", {0, 4}).data(), memory);
}

TEST(TrainingState, MergesTheShardsOfOneArena) {
  TrainingState first, second;
  first.step = second.step = 3;
  first.put("weights", 0, numbers(0, 4));
  second.put("weights", 4, numbers(4, 8));
  second.counts["versions"] = {9};
  first.merge(second);
  EXPECT_TRUE(first.covers("weights", {0, 8}));
  EXPECT_THAT(first.counts["versions"], ElementsAre(9));
  EXPECT_EQ(first.bytes(), 8 * sizeof(float));
}

TEST(TrainingState, KnowsWhichPiecesARangeTouchesAndWhichHasAllOfIt) {
  TrainingState state;
  state.put("weights", 10, std::vector<float>{1, 2, 3});
  state.put("weights", 20, std::vector<float>{4, 5});
  for (const auto& [range, overlaps] : std::vector<std::pair<Range, bool>>{{{0, 10}, false},
                                                                           {{0, 11}, true},
                                                                           {{12, 13}, true},
                                                                           {{13, 20}, false},
                                                                           {{21, 99}, true},
                                                                           {{22, 99}, false}}) {
    EXPECT_EQ(state.overlaps("weights", range), overlaps) << range.begin << " to " << range.end;
  }
  EXPECT_FALSE(state.overlaps("others", {10, 13}));
  EXPECT_EQ(state.within("weights", {11, 13}).size(), 2u);
  EXPECT_EQ(state.within("weights", {11, 13}).front(), 2);
  for (const Range range : {Range{9, 11}, Range{12, 14}, Range{0, 5}, Range{11, 21}}) {
    EXPECT_TRUE(state.within("weights", range).empty()) << range.begin << " to " << range.end;
  }
  state.clear();
  EXPECT_FALSE(state.overlaps("weights", {10, 13})) << "its memory alone is there";
  EXPECT_TRUE(state.within("weights", {10, 13}).empty());
}

}  // namespace
}  // namespace syncopate

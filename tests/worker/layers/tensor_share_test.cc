#include "worker/layers/tensor_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace syncopate::worker {
namespace {

using testing::ElementsAre;

// Returns the elements of the whole tensor that a share has, in the share's order.
std::vector<std::size_t> elements_of(const TensorShare& share) {
  std::vector<std::size_t> elements;
  share.for_each([&](const TensorShare::Stretch& stretch) {
    EXPECT_EQ(stretch.at, elements.size());
    for (std::size_t i = 0; i < stretch.size; ++i) elements.push_back(stretch.begin + i);
  });
  return elements;
}

TensorShare share_of(TensorShare::Shape shape, SplitBy by, int part, int parts, int groups = 1) {
  return TensorShare(std::move(shape), {.by = by, .part = {part, parts}, .groups = groups});
}

TEST(TensorShare, HasAllWithoutASplit) {
  const TensorShare share({2, 3}, {});
  EXPECT_TRUE(share.is_whole());
  EXPECT_THAT(elements_of(share), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TensorShare, HasRowsByOutputs) {
  const TensorShare share = share_of({4, 3}, SplitBy::kOutputs, 1, 2);
  EXPECT_THAT(share.own(), ElementsAre(2, 3));
  EXPECT_FALSE(share.is_whole());
  EXPECT_THAT(elements_of(share), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(elements_of(share_of({4}, SplitBy::kOutputs, 1, 2)), ElementsAre(2, 3)) << "the bias";
}

// Queries, keys and values, of two heads: each worker has a head's.
TEST(TensorShare, HasRowsOfEachGroup) {
  const TensorShare share = share_of({6, 2}, SplitBy::kOutputs, 1, 2, 3);
  EXPECT_THAT(share.own(), ElementsAre(3, 2));
  EXPECT_THAT(elements_of(share), ElementsAre(2, 3, 6, 7, 10, 11));
  EXPECT_THAT(elements_of(share_of({6}, SplitBy::kOutputs, 0, 2, 3)), ElementsAre(0, 2, 4));
}

TEST(TensorShare, HasColumnsByInputs) {
  const TensorShare share = share_of({3, 4}, SplitBy::kInputs, 1, 2);
  EXPECT_THAT(share.own(), ElementsAre(3, 2));
  EXPECT_THAT(elements_of(share), ElementsAre(2, 3, 6, 7, 10, 11));
  EXPECT_TRUE(share_of({3}, SplitBy::kInputs, 1, 2).is_whole()) << "a bias has no inputs";
}

TEST(TensorShare, ShowsARangeOfItself) {
  const TensorShare share = share_of({3, 4}, SplitBy::kInputs, 1, 2);
  std::vector<std::size_t> elements, places;
  share.for_each({1, 4}, [&](const TensorShare::Stretch& stretch) {
    elements.push_back(stretch.begin);
    places.push_back(stretch.at);
    EXPECT_EQ(stretch.size, stretch.at == 2 ? 2u : 1u);
  });
  EXPECT_THAT(elements, ElementsAre(3, 6));
  EXPECT_THAT(places, ElementsAre(1, 2));
}

// All parts together have each element once.
TEST(TensorShare, LeavesNothingOut) {
  for (const SplitBy by : {SplitBy::kOutputs, SplitBy::kInputs}) {
    for (const int parts : {1, 2, 4}) {
      for (const int groups : {1, 3}) {
        const TensorShare first = share_of({24, 8}, by, 0, parts, groups);
        std::vector<std::size_t> all;
        for (int part = 0; part < parts; ++part) {
          const std::vector<std::size_t> own = elements_of(first.of_part(part));
          EXPECT_EQ(own, elements_of(share_of({24, 8}, by, part, parts, groups)));
          all.insert(all.end(), own.begin(), own.end());
        }
        std::ranges::sort(all);
        std::vector<std::size_t> each(24 * 8);
        std::iota(each.begin(), each.end(), 0u);
        EXPECT_EQ(all, each);
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::worker

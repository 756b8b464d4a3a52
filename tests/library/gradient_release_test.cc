#include "library/gradient_release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate::library {
namespace {

// Whatever order gradients come in, buckets leave in theirs, and none before its tensors.
TEST(GradientRelease, ReleasesBucketsInOrderForEveryOrderOfGradients) {
  ParamLayout layout;
  for (const char* name : {"a", "b", "c", "d"}) layout.add(name, {16});
  const std::vector<Range> buckets{{32, 64}, {8, 32}, {0, 8}};  // the second holds a part of the first tensor
  GradientRelease release(layout, buckets);
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    release.begin();
    std::vector<std::size_t> released;
    for (const std::size_t tensor : order) {
      EXPECT_FALSE(release.is_ready(tensor));
      release.ready(tensor, [&](std::size_t bucket) {
        for (const std::size_t member : release.tensors_of(bucket)) EXPECT_TRUE(release.is_ready(member));
        released.push_back(bucket);
      });
    }
    EXPECT_THAT(released, testing::ElementsAre(0, 1, 2));
    EXPECT_TRUE(release.done());
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace syncopate::library

#include "allreduce/strategy/replica_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace syncopate::allreduce {
namespace {

using testing::ElementsAre;

TEST(FrozenVariance, IsRaisedToAPartOfTheMeanWhereItIsSmaller) {
  std::vector<float> variance{0, 1e-30f, 4, 12};  // mean: 4
  raise_small_variances(variance);
  EXPECT_THAT(variance, ElementsAre(4 * kLeastVariance, 4 * kLeastVariance, 4, 12));
}

TEST(FrozenVariance, StaysWhereThereIsNothingToGoBy) {
  std::vector<float> zeros{0, 0}, none, diverged{0, std::numeric_limits<float>::quiet_NaN(), 1};
  raise_small_variances(zeros);
  raise_small_variances(none);
  raise_small_variances(diverged);
  EXPECT_THAT(zeros, ElementsAre(0, 0));
  EXPECT_EQ(diverged[0], 0);
  EXPECT_TRUE(std::isnan(diverged[1]));
}

}  // namespace
}  // namespace syncopate::allreduce

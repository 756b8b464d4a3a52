#include "experiments/cluster/coordinator/replica_means.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(ReplicaMeans, AreThereOnceAllReplicasHaveComeToAPoint) {
  ReplicaMeans means(3);
  EXPECT_EQ(means.add(2, 1, std::vector{3.0f, 30.0f}), std::nullopt);
  EXPECT_EQ(means.add(0, 1, std::vector{1.0f, 0.0f}), std::nullopt);
  EXPECT_EQ(means.add(0, 2, std::vector{10.0f, 10.0f}), std::nullopt) << "a fast one may be further";
  EXPECT_THAT(means.add(1, 1, std::vector{2.0f, 60.0f}), Optional(ElementsAre(2.0f, 30.0f)));
  EXPECT_EQ(means.add(1, 2, std::vector{20.0f, 20.0f}), std::nullopt);
  EXPECT_THAT(means.add(2, 2, std::vector{30.0f, 30.0f}), Optional(ElementsAre(20.0f, 20.0f)));
}

TEST(ReplicaMeans, AreNotOfAPointThatAReplicaHasLeftOut) {
  ReplicaMeans means(2);
  EXPECT_EQ(means.add(0, 1, std::vector{1.0f}), std::nullopt);
  EXPECT_EQ(means.add(0, 2, std::vector{2.0f}), std::nullopt);
  EXPECT_THAT(means.add(1, 2, std::vector{4.0f}), Optional(ElementsAre(3.0f)));
  EXPECT_EQ(means.add(1, 1, std::vector{7.0f}), std::nullopt) << "which is forgotten";
}

// 1e8 and -1e8 leave nothing of 1 in float.
TEST(ReplicaMeans, ComeToTheSameBitsInWhateverOrderTheyCome) {
  const std::vector<std::vector<float>> values{{1e8f}, {1.0f}, {-1e8f}};
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    ReplicaMeans means(3);
    std::optional<std::vector<float>> mean;
    for (const int rank : order) mean = means.add(rank, 0, values[static_cast<std::size_t>(rank)]);
    EXPECT_THAT(mean, Optional(ElementsAre(1.0f / 3)));
  }
}

TEST(ReplicaMeans, AreNotMadeOfWeightsOfAnotherSize) {
  ReplicaMeans means(2);
  means.add(0, 1, std::vector{1.0f});
  EXPECT_EQ(means.add(1, 1, std::vector{1.0f, 2.0f}), std::nullopt);
}

}  // namespace
}  // namespace syncopate::experiments

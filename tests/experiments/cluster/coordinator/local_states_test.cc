#include "experiments/cluster/coordinator/local_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::IsEmpty;
using testing::Optional;

TEST(LocalStates, AreAMeanOnceAllWhoAreAwaitedHaveSentTheirs) {
  LocalStates states(2);
  EXPECT_EQ(states.mean(3, std::vector{0, 1}), std::nullopt);
  EXPECT_TRUE(states.add(1, 3, std::vector{1.0f, 10.0f}));
  EXPECT_EQ(states.mean(3, std::vector{0, 1}), std::nullopt);
  EXPECT_TRUE(states.add(0, 3, std::vector{3.0f, 20.0f}));
  EXPECT_THAT(states.mean(3, std::vector{0, 1}), Optional(ElementsAre(2.0f, 15.0f)));
}

TEST(LocalStates, OfAnEarlierPointAreNotTakenForThoseOfALaterOne) {
  LocalStates states(1);
  states.add(0, 3, std::vector{1.0f});
  states.add(1, 4, std::vector{5.0f});
  EXPECT_EQ(states.mean(4, std::vector{0, 1}), std::nullopt);
  states.add(0, 4, std::vector{3.0f});
  EXPECT_THAT(states.mean(4, std::vector{0, 1}), Optional(ElementsAre(4.0f)));
}

TEST(LocalStates, OfAWorkerThatPassesSeveralPointsAtOnceCountForAllOfThem) {
  LocalStates states(1);
  for (const int point : {1, 2, 3}) states.add(0, point, std::vector{static_cast<float>(point)});
  EXPECT_EQ(states.mean(1, std::vector{0, 1}), std::nullopt);
  states.add(1, 3, std::vector{9.0f});
  EXPECT_THAT(states.mean(1, std::vector{0, 1}), Optional(ElementsAre(5.0f)));
  EXPECT_THAT(states.mean(2, std::vector{0, 1}), Optional(ElementsAre(5.5f)));
  states.add(1, 7, std::vector{100.0f});
  EXPECT_THAT(states.mean(3, std::vector{0, 1}), Optional(ElementsAre(6.0f))) << "its first from there on";
}

TEST(LocalStates, AreForgottenOnceEverybodyWhoIsThereIsFurther) {
  LocalStates states(1);
  for (const int epoch : {0, 1, 2}) states.add(0, epoch, std::vector{1.0f});
  for (const int epoch : {0, 1}) states.add(1, epoch, std::vector{1.0f});
  states.forget_what_is_behind(std::vector{0, 1, 2});
  EXPECT_THAT(states.mean(0, std::vector{0, 1}), Optional(ElementsAre(1.0f))) << "worker 2 may be as far behind";
  states.forget_what_is_behind(std::vector{0, 1});
  EXPECT_THAT(states.mean(1, std::vector{0, 1}), Optional(ElementsAre(1.0f)));
  EXPECT_THAT(states.mean(2, std::vector{0}), Optional(ElementsAre(1.0f)));
  EXPECT_EQ(states.mean(2, std::vector{0, 1}), std::nullopt);
}

TEST(LocalStates, DoNotWaitForALostWorkerButCountWhatItHasSent) {
  LocalStates states(1);
  states.add(0, 0, std::vector{1.0f});
  states.add(2, 0, std::vector{2.0f});
  EXPECT_EQ(states.mean(0, std::vector{0, 1, 2}), std::nullopt);
  EXPECT_THAT(states.mean(0, std::vector{0, 2}), Optional(ElementsAre(1.5f)));  // worker 1 is lost
  EXPECT_THAT(states.mean(0, std::vector{0}), Optional(ElementsAre(1.5f)));     // and then worker 2
}

// 1e8 and -1e8 leave nothing of 1 in float: the order of ranks would show, and the order of coming would, too.
TEST(LocalStates, ComeToTheSameBitsInWhateverOrderTheyCome) {
  const std::vector<std::vector<float>> values{{1e8f}, {1.0f}, {-1e8f}};
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    LocalStates states(1);
    for (int rank : order) states.add(rank, 0, values[static_cast<std::size_t>(rank)]);
    EXPECT_THAT(states.mean(0, order), Optional(ElementsAre(1.0f / 3)));
  }
}

TEST(LocalStates, OfAnotherSizeAreNotKept) {
  LocalStates states(2);
  EXPECT_FALSE(states.add(0, 0, std::vector{1.0f}));
  EXPECT_EQ(states.mean(0, std::vector<int>{}), std::nullopt);
}

TEST(LocalStates, OfAModelThatKeepsNothingAreThereFromTheBeginning) {
  const LocalStates states(0);
  EXPECT_THAT(states.mean(7, std::vector{0, 1}), Optional(IsEmpty()));
}

}  // namespace
}  // namespace syncopate::experiments

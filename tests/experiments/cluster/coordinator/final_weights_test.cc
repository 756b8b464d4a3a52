#include "experiments/cluster/coordinator/final_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Answer = FinalWeights::Answer;

class FinalWeightsTest : public testing::Test {
 protected:
  std::vector<Answer> answers() {
    return final_.take_answers([this](std::size_t process) { return !lost_.contains(process); });
  }

  FinalWeights final_;
  std::set<std::size_t> lost_;
};

TEST_F(FinalWeightsTest, AreHandedInByTheFirstThatAsksWhileTheOthersWait) {
  EXPECT_THAT(answers(), IsEmpty());
  final_.on_question(2);
  EXPECT_THAT(answers(), ElementsAre(Answer{2, true}));
  final_.on_question(0);
  EXPECT_THAT(answers(), IsEmpty());
  final_.on_question(1);
  final_.on_received();
  EXPECT_THAT(answers(), ElementsAre(Answer{0, false}, Answer{1, false}));
  EXPECT_THAT(answers(), IsEmpty()) << "once each";
}

TEST_F(FinalWeightsTest, AreNotWantedFromWhoAsksOnceTheyAreThere) {
  final_.on_received();
  final_.on_question(3);
  EXPECT_THAT(answers(), ElementsAre(Answer{3, false}));
}

TEST_F(FinalWeightsTest, AreAskedOfAnotherWhereTheOneThatWasAskedIsLost) {
  for (const std::size_t process : {0, 1, 2}) final_.on_question(process);
  EXPECT_THAT(answers(), ElementsAre(Answer{0, true}));
  lost_ = {0, 1};
  EXPECT_THAT(answers(), ElementsAre(Answer{2, true}));
  EXPECT_THAT(answers(), IsEmpty());
}

TEST_F(FinalWeightsTest, AreAskedOfTheNextThatComesWhereNobodyElseWaited) {
  final_.on_question(0);
  EXPECT_THAT(answers(), ElementsAre(Answer{0, true}));
  lost_ = {0};
  EXPECT_THAT(answers(), IsEmpty());
  final_.on_question(1);
  EXPECT_THAT(answers(), ElementsAre(Answer{1, true}));
}

TEST(FinalWeights, AreAskedOfTheOneThatHasThem) {
  FinalWeights final_weights(1);
  const auto all_are_there = [](std::size_t) { return true; };
  final_weights.on_question(0);
  EXPECT_THAT(final_weights.take_answers(all_are_there), IsEmpty());
  final_weights.on_question(1);
  EXPECT_THAT(final_weights.take_answers(all_are_there), ElementsAre(Answer{1, true}));
  final_weights.on_received();
  EXPECT_THAT(final_weights.take_answers(all_are_there), ElementsAre(Answer{0, false}));
}

TEST(FinalWeights, LetsNobodyLeaveBeforeAllHaveAsked) {
  const auto all_are_there = [](std::size_t) { return true; };
  FinalWeights final_weights;
  final_weights.on_question(0);
  EXPECT_TRUE(final_weights.take_answers(all_are_there, false).empty());
  final_weights.on_question(1);
  EXPECT_EQ(final_weights.take_answers(all_are_there, true), (std::vector<FinalWeights::Answer>{{0, true}}));
}

}  // namespace
}  // namespace syncopate::experiments

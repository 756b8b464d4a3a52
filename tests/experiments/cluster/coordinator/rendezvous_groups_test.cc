#include "experiments/cluster/coordinator/rendezvous_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;

control::Publish value(const std::string& group, int rank, int size, const std::string& text) {
  control::Publish publish;
  publish.set_group(group);
  publish.set_rank(rank);
  publish.set_size(size);
  publish.set_value(text);
  return publish;
}

TEST(RendezvousGroups, AreAnsweredInTheOrderOfRanksOnceAllAreThere) {
  RendezvousGroups groups;
  EXPECT_FALSE(groups.publish(7, value("data", 1, 2, "there")));
  EXPECT_FALSE(groups.publish(7, value("rings", 0, 2, "another group")));
  const auto answer = groups.publish(5, value("data", 0, 2, "here"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->members.group(), "data");
  EXPECT_THAT(answer->members.values(), ElementsAre("here", "there"));
  EXPECT_THAT(answer->askers, ElementsAre(7, 5));
}

TEST(RendezvousGroups, AnswerAProcessForEachOfItsMembers) {
  RendezvousGroups groups;
  EXPECT_FALSE(groups.publish(7, value("data", 0, 2, "a")));
  EXPECT_THAT(groups.publish(7, value("data", 1, 2, "b"))->askers, ElementsAre(7, 7));
}

TEST(RendezvousGroups, AnswerWhoComesAgainAlone) {
  RendezvousGroups groups;
  ASSERT_TRUE(groups.publish(7, value("data", 0, 1, "a")));
  const auto answer = groups.publish(9, value("data", 0, 1, "b"));
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->members.values(), ElementsAre("b"));
  EXPECT_THAT(answer->askers, ElementsAre(9));
}

TEST(RendezvousGroups, LeaveOutRanksThatCannotBe) {
  RendezvousGroups groups;
  EXPECT_FALSE(groups.publish(7, value("data", -1, 1, "")));
  EXPECT_FALSE(groups.publish(7, value("data", 1, 1, "")));
  EXPECT_FALSE(groups.publish(7, value("data", 0, 0, "")));
  EXPECT_THAT(groups.publish(8, value("data", 0, 1, ""))->askers, ElementsAre(8));
}

TEST(RendezvousGroups, ForgetWhatWasPublishedForAnEarlierMembership) {
  RendezvousGroups groups;
  EXPECT_FALSE(groups.publish(7, value("data@1", 0, 2, "old")));
  EXPECT_FALSE(groups.publish(7, value("data@2", 0, 2, "new")));
  groups.begin_membership(2);
  EXPECT_FALSE(groups.publish(8, value("data@1", 1, 2, "old")));
  EXPECT_THAT(groups.publish(8, value("data@2", 1, 2, "new"))->askers, ElementsAre(7, 8));
}

}  // namespace
}  // namespace syncopate::experiments

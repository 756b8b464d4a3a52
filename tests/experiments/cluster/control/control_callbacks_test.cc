#include "experiments/cluster/control/control_callbacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;

class ControlCallbacksTest : public testing::Test {
 protected:
  static MembershipEpoch membership_epoch(std::int64_t number) { return {.number = number, .workers = {0, 1}}; }

  AnswerBoard board_{Role::kWorker, 0};
  ControlCallbacks callbacks_{board_};
  int calls_ = 0;
};

TEST_F(ControlCallbacksTest, NobodyNeedsToListen) {
  callbacks_.stop();
  callbacks_.lose_worker(1);
  callbacks_.begin_membership(membership_epoch(0));
  callbacks_.order_checkpoint(0, 100);
  EXPECT_FALSE(callbacks_.collective_state());
}

TEST_F(ControlCallbacksTest, AStopIsToldThenOrAtOnceToWhoComesLater) {
  const Subscription first = callbacks_.on_stop([&] { ++calls_; });
  EXPECT_EQ(calls_, 0);
  callbacks_.stop();
  EXPECT_EQ(calls_, 1);
  const Subscription second = callbacks_.on_stop([&] { calls_ += 10; });
  EXPECT_EQ(calls_, 11);
}

TEST_F(ControlCallbacksTest, LostWorkersAreToldInOrderUntilThereIsANewMembership) {
  std::vector<int> lost;
  const auto listen = [&](int rank) { lost.push_back(rank); };
  callbacks_.lose_worker(2);
  Subscription listening = callbacks_.on_worker_lost(listen);
  callbacks_.lose_worker(1);
  EXPECT_THAT(lost, ElementsAre(2, 1));
  callbacks_.begin_membership(membership_epoch(1));
  listening = callbacks_.on_worker_lost(listen);
  EXPECT_THAT(lost, ElementsAre(2, 1)) << "they are no news";
  listening.reset();
  callbacks_.lose_worker(0);
  EXPECT_THAT(lost, ElementsAre(2, 1)) << "taken back";
}

TEST_F(ControlCallbacksTest, ANewMembershipIsToldOnceItIsNewerThanTheOneJoined) {
  callbacks_.begin_membership(membership_epoch(1));
  ASSERT_TRUE(board_.join(-1, SteadyClock().now()).ok());
  Subscription listening = callbacks_.on_regroup([&] { ++calls_; });
  callbacks_.begin_membership(membership_epoch(1));
  EXPECT_EQ(calls_, 0) << "it is in that one";
  callbacks_.begin_membership(membership_epoch(2));
  EXPECT_EQ(calls_, 1);
  listening = callbacks_.on_regroup([&] { calls_ += 10; });
  EXPECT_EQ(calls_, 11) << "at once, to who comes later";
  ASSERT_TRUE(board_.join(1, SteadyClock().now()).ok());
  listening = callbacks_.on_regroup([&] { calls_ += 100; });
  EXPECT_EQ(calls_, 11) << "joined meanwhile";
}

TEST_F(ControlCallbacksTest, ACheckpointIsOrderedFromWhoListens) {
  std::vector<std::int64_t> steps;
  Subscription orders = callbacks_.on_checkpoint_order([&](std::int64_t, std::int64_t step) { steps.push_back(step); });
  callbacks_.order_checkpoint(3, 100);
  orders.reset();
  callbacks_.order_checkpoint(3, 200);
  EXPECT_THAT(steps, ElementsAre(100));
}

TEST_F(ControlCallbacksTest, AskForTheCollectiveOperationWhereThereIsSomebodyToAsk) {
  Subscription asked = callbacks_.on_heartbeat([] { return allreduce::CollectiveState{.begun = 7}; });
  ASSERT_TRUE(callbacks_.collective_state());
  EXPECT_EQ(callbacks_.collective_state()->begun, 7);
  asked.reset();
  EXPECT_FALSE(callbacks_.collective_state());
}

TEST_F(ControlCallbacksTest, EachSubscriptionEndsForItselfAlone) {
  const Subscription kept = callbacks_.on_stop([&] { ++calls_; });
  Subscription moved;
  {
    Subscription ended = callbacks_.on_stop([&] { calls_ += 10; });
    moved = callbacks_.on_stop([&] { calls_ += 100; });
  }
  const Subscription owner = std::move(moved);
  callbacks_.stop();
  EXPECT_EQ(calls_, 101);
}

}  // namespace
}  // namespace syncopate::experiments

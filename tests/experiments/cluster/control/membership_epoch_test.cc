// How a process goes from one membership epoch of a run to the next.
#include "experiments/cluster/control/membership_epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "experiments/cluster/control/wire_records.h"
#include "tests/experiments/cluster/control/fake_coordinator.h"

namespace syncopate::experiments {
namespace {

class ControlMembership : public Control {
 protected:
  void proclaim(const MembershipEpoch& membership) {
    coordinator_.answer([&](FromCoordinator& message) { *message.mutable_membership() = to_wire(membership); });
  }
  // Asks for it while the coordinator is asked.
  std::future<Result<MembershipEpoch>> joining(std::int64_t after) {
    return std::async(std::launch::async, [this, after] { return client_->join_membership(after, soon()); });
  }
};

TEST(MembershipEpoch, SaysWhoTakesPart) {
  const MembershipEpoch membership{.workers = {0, 2}, .servers = {{.has_server = false, .has_standby = true}, {}}};
  EXPECT_TRUE(takes_part(membership, Role::kWorker, 2));
  EXPECT_FALSE(takes_part(membership, Role::kWorker, 1));
  EXPECT_FALSE(takes_part(membership, Role::kServer, 0));
  EXPECT_TRUE(takes_part(membership, Role::kStandby, 0));
  EXPECT_TRUE(takes_part(membership, Role::kServer, 1));
  EXPECT_FALSE(takes_part(membership, Role::kServer, 2));
  EXPECT_FALSE(takes_part(membership, Role::kEvaluator, 0));
}

TEST(MembershipEpoch, PassesTheWireAsItIs) {
  const MembershipEpoch membership{.number = 7,
                                   .begins = false,
                                   .workers = {0, 2},
                                   .servers = {{.has_server = true, .has_standby = true, .standby_leads = true}},
                                   .restore = "checkpoints/step-000100"};
  EXPECT_EQ(from_wire(to_wire(membership)), membership);
}

TEST_F(ControlMembership, AsksForOneAndWaitsUntilItTakesPart) {
  auto joined = joining(-1);
  const std::optional<Received> request = coordinator_.next(ToCoordinator::kJoinRequest);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->message.join_request().after(), -1);
  proclaim({.number = 0, .workers = {1}});
  proclaim({.number = 1, .workers = {0, 1}});
  const Result<MembershipEpoch> membership = joined.get();
  ASSERT_TRUE(membership.ok());
  EXPECT_EQ(membership->number, 1);
}

TEST_F(ControlMembership, ANewerOneEndsWhatIsWaitedForInTheOneBefore) {
  auto joined = joining(-1);
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kJoinRequest));
  proclaim({.number = 0, .workers = {0, 1}});
  ASSERT_TRUE(joined.get().ok());
  std::promise<void> told;
  Subscription on_regroup = client_->on_regroup([&] { told.set_value(); });
  auto exchange = std::async(std::launch::async, [&] { return client_->exchange("data@0", 0, 2, "here", soon()); });
  ASSERT_TRUE(coordinator_.next(ToCoordinator::kPublish));
  proclaim({.number = 1, .workers = {0}});
  EXPECT_EQ(exchange.get().status().code(), Code::kCancelled);
  EXPECT_EQ(told.get_future().wait_until(soon()), std::future_status::ready);
  on_regroup.reset();
  const Result<MembershipEpoch> next = client_->join_membership(0, soon());  // which is known, and not asked for
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->number, 1);
}

TEST_F(ControlMembership, WhoWasLostInAnEarlierOneIsNotReportedInTheNext) {
  coordinator_.lose(3);
  proclaim({.number = 1, .workers = {0, 3}});
  coordinator_.lose(2);
  ASSERT_TRUE(client_->join_membership(0, soon()).ok());
  std::promise<int> lost;
  Subscription on_loss = client_->on_worker_lost([&](int rank) { lost.set_value(rank); });
  EXPECT_EQ(lost.get_future().get(), 2);
  on_loss.reset();
}

TEST_F(ControlMembership, TroubleNamesTheMembershipThatItIsOf) {
  proclaim({.number = 4, .workers = {0}});
  ASSERT_TRUE(client_->join_membership(-1, soon()).ok());
  client_->report_trouble(Status::peer_lost("rank 1 is gone"));
  const std::optional<Received> report = coordinator_.next(ToCoordinator::kTrouble);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->message.trouble().membership_epoch(), 4);
  EXPECT_EQ(report->message.trouble().failure().message(), "rank 1 is gone");
}

TEST_F(ControlMembership, AMissingWorkerIsReportedOfTheMembershipThatItIsMissingIn) {
  proclaim({.number = 4, .workers = {0}});
  ASSERT_TRUE(client_->join_membership(-1, soon()).ok());
  client_->report_missing(1, std::chrono::seconds(7));
  const std::optional<Received> report = coordinator_.next(ToCoordinator::kMissingWorker);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->message.missing_worker().membership_epoch(), 4);
  EXPECT_EQ(report->message.missing_worker().rank(), 1);
  EXPECT_EQ(Duration(report->message.missing_worker().waited()), std::chrono::seconds(7));
}

TEST_F(ControlMembership, EndInTimeWhereThereIsNoneToCome) {
  const Result<MembershipEpoch> none =
      client_->join_membership(-1, SteadyClock().now() + std::chrono::milliseconds(20));
  EXPECT_EQ(none.status().code(), Code::kDeadlineExceeded);
  coordinator_.stop();
  EXPECT_EQ(client_->join_membership(-1, soon()).status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace syncopate::experiments

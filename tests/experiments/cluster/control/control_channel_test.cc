#include "experiments/cluster/control/control_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;
using testing::ElementsAre;

TimePoint in_time() { return SteadyClock().now() + std::chrono::seconds(20); }
TimePoint now() { return SteadyClock().now(); }

ToCoordinator question(const std::string& kind, std::int64_t number = 0) {
  ToCoordinator message;
  if (kind == "group") message.mutable_publish()->set_group("data");
  if (kind == "epoch") message.mutable_epoch_question()->set_epoch(number);
  if (kind == "step") message.mutable_step_announcement()->set_step(number);
  if (kind == "batches") message.mutable_batch_request()->set_number(number);
  if (kind == "leave") message.mutable_leave_question();
  if (kind == "finish") message.mutable_finish_question();
  return message;
}

FromCoordinator answer(const std::string& kind, std::int64_t number = 0) {
  FromCoordinator message;
  if (kind == "group") message.mutable_members()->set_group("data");
  if (kind == "epoch") message.mutable_epoch_answer()->set_epoch(number);
  if (kind == "step") message.mutable_step_answer()->set_step(number);
  if (kind == "batches") message.mutable_batch_lease()->set_number(number);
  if (kind == "leave") message.mutable_leave_answer();
  if (kind == "finish") message.mutable_finish_answer();
  return message;
}

constexpr const char* kKinds[] = {"group", "epoch", "step", "batches", "leave", "finish"};

class ControlChannelTest : public testing::Test {
 protected:
  std::future<Code> waiting_for(const ToCoordinator& asked) {
    return std::async(std::launch::async,
                      [this, asked] { return channel_.wait_for(asked, in_time()).status().code(); });
  }

  static MembershipEpoch membership(std::int64_t number) { return {.number = number, .workers = {0, 1}}; }

  ControlChannel channel_{Role::kWorker, 1};
  int calls_ = 0;
};

TEST_F(ControlChannelTest, GivesAnAnswerThatIsTakenOnce) {
  EXPECT_FALSE(channel_.take(question("batches", 1)));
  channel_.put(answer("batches", 1));
  EXPECT_FALSE(channel_.take(question("batches", 2)));
  EXPECT_TRUE(channel_.take(question("batches", 1)));
  EXPECT_FALSE(channel_.take(question("batches", 1)));
  channel_.put(answer("batches", 2));
  channel_.stop();
  EXPECT_FALSE(channel_.take(question("batches", 2)));
}

TEST_F(ControlChannelTest, GivesEachQuestionItsOwnAnswer) {
  for (const std::string asked : kKinds) {
    ControlChannel channel(Role::kWorker, 1);
    for (const std::string answered : kKinds) {
      if (answered != asked) channel.put(answer(answered));
    }
    EXPECT_EQ(channel.wait_for(question(asked), now()).status().code(), Code::kDeadlineExceeded) << asked;
    channel.put(answer(asked));
    EXPECT_TRUE(channel.wait_for(question(asked), now()).ok()) << asked;
    EXPECT_TRUE(channel.wait_for(question(asked), now()).ok()) << asked << ": another thread may have asked it, too";
  }
}

TEST_F(ControlChannelTest, TellsEpochsAndStepsApartByTheirNumbers) {
  channel_.put(answer("epoch", 3));
  channel_.put(answer("step", 7));
  EXPECT_FALSE(channel_.wait_for(question("epoch", 7), now()).ok());
  EXPECT_FALSE(channel_.wait_for(question("step", 3), now()).ok());
  EXPECT_TRUE(channel_.wait_for(question("epoch", 3), now()).ok());
  EXPECT_TRUE(channel_.wait_for(question("step", 7), now()).ok());
}

TEST_F(ControlChannelTest, SaysWhatItWaitedForAtTheDeadline) {
  EXPECT_EQ(channel_.wait_for(question("step", 7), now()).status().message(),
            "waiting for step 7: not everybody is there");
}

TEST_F(ControlChannelTest, WaitsOnBehindADeadlineWhereTheCoordinatorDidNotRun) {
  const auto patience = std::make_shared<Patience>();
  patience->set_timeout(std::chrono::milliseconds(300));
  ControlChannel channel(Role::kWorker, 1, patience);
  patience->excuse(now());
  EXPECT_EQ(channel.wait_for(question("step", 7), now()).status().code(), Code::kDeadlineExceeded);
  EXPECT_GE(now(), patience->until());
  patience->excuse(now());
  EXPECT_EQ(channel.join(-1, now()).status().code(), Code::kDeadlineExceeded);
  EXPECT_GE(now(), patience->until());
}

TEST_F(ControlChannelTest, WakesAllWhoWait) {
  std::future<Code> first = waiting_for(question("group")), second = waiting_for(question("group"));
  channel_.put(answer("group"));
  EXPECT_EQ(first.get(), Code::kOk);
  EXPECT_EQ(second.get(), Code::kOk);
}

TEST_F(ControlChannelTest, LeavesOutWhatAnswersNothing) {
  FromCoordinator message;
  message.mutable_alive();
  channel_.put(message);
  EXPECT_FALSE(channel_.wait_for({}, now()).ok());
}

TEST_F(ControlChannelTest, EndsQuestionsToAMembershipWhenThereIsANewerOne) {
  channel_.begin_membership({.number = 4, .workers = {0, 1}});
  ASSERT_TRUE(channel_.join(-1, now()).ok());
  channel_.put(answer("epoch", 1));
  std::future<Code> group = waiting_for(question("group")), finish = waiting_for(question("finish"));
  channel_.begin_membership({.number = 5, .workers = {0, 1}});
  EXPECT_EQ(group.get(), Code::kCancelled);
  EXPECT_EQ(channel_.wait_for(question("epoch", 1), in_time()).status().code(), Code::kCancelled) << "was forgotten";
  channel_.put(answer("finish"));
  EXPECT_EQ(finish.get(), Code::kOk) << "which is of the run";
}

TEST_F(ControlChannelTest, JoinsTheNewestMembershipThatThisProcessIsPartOf) {
  EXPECT_EQ(channel_.joined(), -1);
  channel_.begin_membership({.number = 0, .workers = {0}});
  EXPECT_FALSE(channel_.knows_membership(-1));
  EXPECT_EQ(channel_.join(-1, now()).status().message(), "no membership after -1");
  EXPECT_TRUE(channel_.is_superseded()) << "it is in none";
  channel_.begin_membership({.number = 1, .workers = {0, 1}});
  channel_.begin_membership({.number = 1, .workers = {0}});  // is known
  EXPECT_TRUE(channel_.knows_membership(0));
  EXPECT_FALSE(channel_.knows_membership(1));
  const Result<MembershipEpoch> joined = channel_.join(0, now());
  ASSERT_TRUE(joined.ok());
  EXPECT_THAT(joined->workers, ElementsAre(0, 1));
  EXPECT_EQ(channel_.joined(), 1);
  EXPECT_FALSE(channel_.is_superseded());
}

TEST_F(ControlChannelTest, EndsAllWaitsWhenTheProcessIsToStop) {
  std::future<Code> finish = waiting_for(question("finish"));
  auto joining = std::async(std::launch::async, [this] { return channel_.join(-1, in_time()).status().code(); });
  EXPECT_FALSE(channel_.is_off());
  channel_.stop();
  EXPECT_TRUE(channel_.is_off());
  EXPECT_EQ(finish.get(), Code::kCancelled);
  EXPECT_EQ(joining.get(), Code::kCancelled);
}

TEST_F(ControlChannelTest, NobodyNeedsToListen) {
  channel_.stop();
  channel_.lose_worker(1);
  channel_.begin_membership(membership(0));
  channel_.order_checkpoint(0, 100);
  EXPECT_FALSE(channel_.collective_state());
}

TEST_F(ControlChannelTest, AStopIsToldThenOrAtOnceToWhoComesLater) {
  const Subscription first = channel_.on_stop([&] { ++calls_; });
  EXPECT_EQ(calls_, 0);
  channel_.stop();
  EXPECT_EQ(calls_, 1);
  const Subscription second = channel_.on_stop([&] { calls_ += 10; });
  EXPECT_EQ(calls_, 11);
}

TEST_F(ControlChannelTest, LostWorkersAreToldInOrderUntilThereIsANewMembership) {
  std::vector<int> lost;
  const auto listen = [&](int rank) { lost.push_back(rank); };
  channel_.lose_worker(2);
  Subscription listening = channel_.on_worker_lost(listen);
  channel_.lose_worker(1);
  EXPECT_THAT(lost, ElementsAre(2, 1));
  channel_.begin_membership(membership(1));
  listening = channel_.on_worker_lost(listen);
  EXPECT_THAT(lost, ElementsAre(2, 1)) << "they are no news";
  listening.reset();
  channel_.lose_worker(0);
  EXPECT_THAT(lost, ElementsAre(2, 1)) << "taken back";
}

TEST_F(ControlChannelTest, ANewMembershipIsToldOnceItIsNewerThanTheOneJoined) {
  channel_.begin_membership(membership(1));
  ASSERT_TRUE(channel_.join(-1, now()).ok());
  Subscription listening = channel_.on_regroup([&] { ++calls_; });
  channel_.begin_membership(membership(1));
  EXPECT_EQ(calls_, 0) << "it is in that one";
  channel_.begin_membership(membership(2));
  EXPECT_EQ(calls_, 1);
  listening = channel_.on_regroup([&] { calls_ += 10; });
  EXPECT_EQ(calls_, 11) << "at once, to who comes later";
  ASSERT_TRUE(channel_.join(1, now()).ok());
  listening = channel_.on_regroup([&] { calls_ += 100; });
  EXPECT_EQ(calls_, 11) << "joined meanwhile";
}

TEST_F(ControlChannelTest, ACheckpointIsOrderedFromWhoListens) {
  std::vector<std::int64_t> steps;
  Subscription orders = channel_.on_checkpoint_order([&](std::int64_t, std::int64_t step) { steps.push_back(step); });
  channel_.order_checkpoint(3, 100);
  orders.reset();
  channel_.order_checkpoint(3, 200);
  EXPECT_THAT(steps, ElementsAre(100));
}

TEST_F(ControlChannelTest, AskForTheCollectiveOperationWhereThereIsSomebodyToAsk) {
  Subscription asked = channel_.on_heartbeat([] { return allreduce::CollectiveState{.begun = 7}; });
  ASSERT_TRUE(channel_.collective_state());
  EXPECT_EQ(channel_.collective_state()->begun, 7);
  asked.reset();
  EXPECT_FALSE(channel_.collective_state());
}

TEST_F(ControlChannelTest, EachSubscriptionEndsForItselfAlone) {
  const Subscription kept = channel_.on_stop([&] { ++calls_; });
  Subscription moved;
  {
    Subscription ended = channel_.on_stop([&] { calls_ += 10; });
    moved = channel_.on_stop([&] { calls_ += 100; });
  }
  const Subscription owner = std::move(moved);
  channel_.stop();
  EXPECT_EQ(calls_, 101);
}

TEST_F(ControlChannelTest, TellsAStopOnceThoughItIsOrderedTwice) {
  const Subscription listening = channel_.on_stop([&] { ++calls_; });
  channel_.stop();
  channel_.stop();
  EXPECT_EQ(calls_, 1);
}

TEST_F(ControlChannelTest, LetsACallbackUseTheChannel) {
  const Subscription listening = channel_.on_stop([&] {
    EXPECT_TRUE(channel_.is_off());
    channel_.post(question("leave"));
  });
  channel_.stop();
  EXPECT_EQ(channel_.take_outgoing().size(), 1u);
}

TEST_F(ControlChannelTest, EndsASubscriptionOnceItsCallbackHasReturned) {
  std::promise<void> begun, may_end;
  std::atomic<bool> has_returned = false;
  Subscription listening = channel_.on_stop([&] {
    begun.set_value();
    may_end.get_future().wait();
    has_returned = true;
  });
  auto stopping = std::async(std::launch::async, [this] { channel_.stop(); });
  begun.get_future().wait();
  auto ending = std::async(std::launch::async, [&] {
    listening.reset();
    return has_returned.load();
  });
  EXPECT_EQ(ending.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  may_end.set_value();
  EXPECT_TRUE(ending.get());
  stopping.get();
}

TEST_F(ControlChannelTest, RunsOneCallbackAtATime) {
  std::atomic<int> running = 0;
  const auto callback = [&] {
    EXPECT_EQ(++running, 1);
    std::this_thread::yield();
    --running;
    ++calls_;
  };
  const Subscription lost = channel_.on_worker_lost([&](int) { callback(); });
  auto losing = std::async(std::launch::async, [this] {
    for (int rank = 0; rank < 200; ++rank) channel_.lose_worker(rank);
  });
  channel_.begin_membership(membership(1));
  for (int i = 0; i < 200; ++i) Subscription regroup = channel_.on_regroup(callback);
  losing.get();
  EXPECT_EQ(calls_, 400);
}

TEST_F(ControlChannelTest, GivesSnapshotsInTheOrderInWhichTheyCame) {
  channel_.push_snapshot({.point = 2, .weights = {1, 2}});
  channel_.push_snapshot({.point = 1, .weights = {}});
  EXPECT_EQ(channel_.next_snapshot()->point, 2);
  EXPECT_EQ(channel_.next_snapshot()->point, 1);
  auto next = std::async(std::launch::async, [this] { return channel_.next_snapshot(); });
  channel_.push_snapshot({.point = 5, .weights = {}});
  EXPECT_EQ(next.get()->point, 5);
}

TEST_F(ControlChannelTest, GivesSnapshotsThatHadComeBeforeAStop) {
  channel_.push_snapshot({.point = 5, .weights = {}});
  channel_.stop();
  EXPECT_EQ(channel_.next_snapshot()->point, 5);
  EXPECT_EQ(channel_.next_snapshot().status().code(), Code::kCancelled);
}

TEST_F(ControlChannelTest, EndsAWaitForASnapshotAtAStop) {
  auto next = std::async(std::launch::async, [this] { return channel_.next_snapshot(); });
  channel_.stop();
  EXPECT_EQ(next.get().status().code(), Code::kCancelled);
}

TEST_F(ControlChannelTest, SendsEachRecordOnceInOrderAndBeforeWhatIsPostedNext) {
  channel_.post_records();
  EXPECT_TRUE(channel_.take_outgoing().empty()) << "there are none";
  channel_.begin_membership(membership(0));
  ASSERT_TRUE(channel_.join(-1, now()).ok());
  channel_.add({.step = 4});
  channel_.begin_membership(membership(1));
  ASSERT_TRUE(channel_.join(0, now()).ok());
  channel_.add({.step = 5});
  channel_.post_records();
  channel_.post(question("leave"));
  channel_.add({.step = 6});
  const std::deque<ControlChannel::Outgoing> sent = channel_.take_outgoing();
  ASSERT_EQ(sent.size(), 2u);
  const std::vector<SentStep> steps = *unpack_steps(sent[0].message.steps().packed());
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].record.step, 4);
  EXPECT_EQ(steps[0].membership_epoch, 0);
  EXPECT_EQ(steps[1].record.step, 5);
  EXPECT_EQ(steps[1].membership_epoch, 1);
  EXPECT_TRUE(sent[1].message.has_leave_question());
  channel_.post_records();
  EXPECT_EQ(unpack_steps(channel_.take_outgoing().front().message.steps().packed())->size(), 1u);
}

// The receiver takes no more than that in one message.
TEST_F(ControlChannelTest, DividesRecordsThatAreTooManyForOneMessage) {
  for (std::size_t i = 0; i <= kMostPackedSteps; ++i) channel_.add({.step = static_cast<std::int64_t>(i)});
  channel_.post_records();
  const std::deque<ControlChannel::Outgoing> sent = channel_.take_outgoing();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(unpack_steps(sent[0].message.steps().packed())->size(), kMostPackedSteps);
  EXPECT_EQ(unpack_steps(sent[1].message.steps().packed())->front().record.step, kMostPackedSteps);
}

TEST_F(ControlChannelTest, ReportsTheFirstFailureAfterAllRecords) {
  control::Failure first, second;
  first.set_message("first");
  channel_.add({.step = 4});
  channel_.fail(first);
  channel_.fail(second);
  const std::deque<ControlChannel::Outgoing> sent = channel_.take_outgoing();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_TRUE(sent[0].message.has_steps());
  EXPECT_EQ(sent[1].message.failure().message(), "first");
}

TEST_F(ControlChannelTest, IsWelcomedOnceTheClocksAreCompared) {
  EXPECT_EQ(channel_.wait_for_welcome(now()).status().code(), Code::kDeadlineExceeded);
  control::Welcome welcome;
  welcome.set_checkpoints("folder");
  channel_.welcome(welcome);
  EXPECT_EQ(channel_.wait_for_welcome(now())->checkpoints(), "folder");
  welcome.set_compare_clocks(true);
  channel_.welcome(welcome);
  EXPECT_EQ(channel_.wait_for_welcome(now()).status().code(), Code::kDeadlineExceeded);
  auto waiting =
      std::async(std::launch::async, [this] { return channel_.wait_for_welcome(in_time()).status().code(); });
  channel_.clocks_compared();
  EXPECT_EQ(waiting.get(), Code::kOk);
}

TEST_F(ControlChannelTest, WakesWhoSendsWhenSomethingIsQueued) {
  int wakes = 0;
  channel_.wake_by([&] { ++wakes; });
  channel_.post(question("leave"));
  EXPECT_EQ(wakes, 1);
  channel_.set_limits({});
  EXPECT_EQ(wakes, 2);
}

}  // namespace
}  // namespace syncopate::experiments

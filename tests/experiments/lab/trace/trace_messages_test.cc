#include "experiments/lab/trace/trace_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TimePoint moment(int time) { return TimePoint(Duration(time)); }

// The events of two workers and a server, that a test adds in order of their begin.
class Recorded {
 public:
  const TraceEvent* add(std::size_t process, const TraceEvent& event, int begin, int end) {
    events_.push_back(event);
    events_.back().begin = moment(begin);
    events_.back().end = moment(end);
    by_process_[process].push_back(&events_.back());
    return &events_.back();
  }
  const TraceEvent* push(TraceKind kind, int worker, std::int64_t clock, int begin, int end) {
    const bool is_workers = kind == TraceKind::kPush || kind == TraceKind::kAnswerTaken;
    return add(is_workers ? static_cast<std::size_t>(worker) : kServer,
               {.kind = kind, .shard = 0, .peer = worker, .item = 3, .number = clock}, begin, end);
  }
  TraceMessages join() const { return join_messages(by_process_); }

  static constexpr std::size_t kServer = 2;

 private:
  std::deque<TraceEvent> events_;
  std::vector<std::vector<const TraceEvent*>> by_process_ = std::vector<std::vector<const TraceEvent*>>(3);
};

TEST(TraceMessages, JoinAPushItsUpdateAndItsAnswer) {
  Recorded recorded;
  const TraceEvent* const sent = recorded.push(TraceKind::kPush, 1, 7, 10, 12);
  recorded.push(TraceKind::kPushTaken, 1, 7, 20, 50);
  const TraceEvent* const update = recorded.push(TraceKind::kShardUpdate, 1, 7, 20, 40);
  recorded.push(TraceKind::kAnswerSent, 1, 7, 42, 45);
  const TraceEvent* const taken = recorded.push(TraceKind::kAnswerTaken, 1, 7, 60, 70);
  const TraceMessages joined = recorded.join();
  ASSERT_THAT(joined.messages, SizeIs(2));
  EXPECT_EQ(joined.messages[0].begin, moment(10));
  EXPECT_EQ(joined.messages[0].end, moment(20));
  EXPECT_EQ(joined.messages[0].sender, 1U);
  EXPECT_EQ(joined.messages[0].receiver, Recorded::kServer);
  EXPECT_EQ(joined.messages[1].begin, moment(42));
  EXPECT_EQ(joined.messages[1].end, moment(60));
  ASSERT_THAT(joined.pushes, SizeIs(1));
  EXPECT_EQ(joined.pushes[0].sent, sent);
  EXPECT_THAT(joined.pushes[0].updates, ElementsAre(update));
  EXPECT_EQ(joined.pushes[0].answered, taken);
  EXPECT_EQ(joined.unjoined, 0);
}

TEST(TraceMessages, LetAllPushesThatHaveWaitedLeadToTheUpdate) {
  Recorded recorded;
  for (const int worker : {0, 1}) recorded.push(TraceKind::kPush, worker, 1, worker, worker + 1);
  recorded.push(TraceKind::kPushTaken, 1, 1, 5, 6);
  recorded.push(TraceKind::kPushTaken, 0, 1, 10, 20);
  const TraceEvent* const update = recorded.push(TraceKind::kShardUpdate, 0, 1, 10, 15);
  for (const int worker : {0, 1}) recorded.push(TraceKind::kAnswerSent, worker, 1, 16 + worker, 17 + worker);
  for (const int worker : {0, 1}) recorded.push(TraceKind::kAnswerTaken, worker, 1, 30, 31);
  const TraceMessages joined = recorded.join();
  ASSERT_THAT(joined.pushes, SizeIs(2));
  for (const TracePush& push : joined.pushes) EXPECT_THAT(push.updates, ElementsAre(update));
}

TEST(TraceMessages, DoNotLetAPushThatCameLateLeadToTheNextUpdate) {
  Recorded recorded;
  recorded.push(TraceKind::kPush, 0, 1, 0, 1);
  recorded.push(TraceKind::kPushTaken, 0, 1, 5, 8);
  recorded.push(TraceKind::kAnswerSent, 0, 1, 6, 7);
  recorded.push(TraceKind::kAnswerTaken, 0, 1, 9, 10);
  recorded.push(TraceKind::kPushTaken, 1, 2, 20, 30);
  recorded.push(TraceKind::kShardUpdate, 1, 2, 20, 25);
  const TraceMessages joined = recorded.join();
  ASSERT_THAT(joined.pushes, SizeIs(1));
  EXPECT_THAT(joined.pushes[0].updates, IsEmpty());
}

TEST(TraceMessages, CountWhatHasNoOtherEnd) {
  Recorded recorded;
  recorded.push(TraceKind::kPush, 0, 1, 0, 1);
  recorded.push(TraceKind::kAnswerTaken, 1, 4, 0, 1);
  const TraceMessages joined = recorded.join();
  EXPECT_THAT(joined.messages, IsEmpty());
  EXPECT_THAT(joined.pushes, IsEmpty());
  EXPECT_EQ(joined.unjoined, 2);
}

TEST(TraceMessages, JoinPartsByTheirOperationAndMembershipEpoch) {
  Recorded recorded;
  const auto part = [](TraceKind kind, int rank, int peer, int membership) {
    return TraceEvent{
        .kind = kind, .membership = membership, .shard = rank, .peer = peer, .item = 2, .number = 9, .bytes = 64};
  };
  recorded.add(0, part(TraceKind::kPartSent, 0, 1, 0), 0, 1);
  recorded.add(1, part(TraceKind::kPartTaken, 1, 0, 1), 0, 5);
  EXPECT_THAT(recorded.join().messages, IsEmpty());
  recorded.add(1, part(TraceKind::kPartTaken, 1, 0, 0), 6, 8);
  const TraceMessages joined = recorded.join();
  ASSERT_THAT(joined.messages, SizeIs(1));
  EXPECT_EQ(joined.messages[0].begin, moment(0));
  EXPECT_EQ(joined.messages[0].end, moment(8));  // it is there when the wait for it ends
}

TEST(TraceMessages, NeverEndBeforeTheyBeginWhateverClocksSay) {
  Recorded recorded;
  recorded.push(TraceKind::kPush, 0, 1, 10, 12);
  recorded.push(TraceKind::kPushTaken, 0, 1, 7, 11);
  const TraceMessages joined = recorded.join();
  ASSERT_THAT(joined.messages, SizeIs(1));
  EXPECT_EQ(joined.messages[0].end, moment(10));
}

}  // namespace
}  // namespace syncopate::experiments

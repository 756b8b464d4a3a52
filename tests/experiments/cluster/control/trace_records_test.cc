#include "experiments/cluster/control/trace_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const TraceEvent kEvent{.kind = TraceKind::kAnswerSent,
                        .membership = 1,
                        .shard = 2,
                        .peer = 3,
                        .item = 4,
                        .number = 5,
                        .value = -6,
                        .bytes = 7,
                        .begin = TimePoint(Duration(1000)),
                        .end = TimePoint(Duration(1500))};

TEST(TraceRecords, ArriveAsTheyWereRecorded) {
  const std::vector<control::Trace> batches = to_wire(std::vector{kEvent, TraceEvent{}}, 8);
  ASSERT_THAT(batches, SizeIs(1));
  TraceInbox inbox(1, 10);
  const TraceInbox::Batch batch = inbox.take(0, batches[0], {});
  EXPECT_THAT(batch.events, ElementsAre(kEvent, TraceEvent{}));
  EXPECT_EQ(batch.dropped, 8);
}

TEST(TraceRecords, GoInBatchesOfWhichTheLastCountsWhatDidNotFit) {
  const std::vector<control::Trace> batches = to_wire(std::vector<TraceEvent>(2500), 3);
  ASSERT_THAT(batches, SizeIs(3));
  EXPECT_EQ(batches[0].numbers_size() + batches[1].numbers_size() + batches[2].numbers_size(), 25000);
  EXPECT_EQ(batches[0].dropped(), 0);
  EXPECT_EQ(batches[2].dropped(), 3);
}

TEST(TraceInbox, CorrectsTimesByTheProcesssClock) {
  TraceInbox inbox(1, 10);
  const TraceInbox::Batch batch = inbox.take(0, to_wire(std::vector{kEvent}, 0)[0], Duration(-400));
  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_EQ(batch.events[0].begin, TimePoint(Duration(600)));
  EXPECT_EQ(batch.events[0].end, TimePoint(Duration(1100)));
}

TEST(TraceInbox, TakesNoMoreOfAProcessThanItKeeps) {
  TraceInbox inbox(2, 3);
  const control::Trace batch = to_wire(std::vector<TraceEvent>(2), 0)[0];
  EXPECT_THAT(inbox.take(0, batch, {}).events, SizeIs(2));
  const TraceInbox::Batch rest = inbox.take(0, batch, {});
  EXPECT_THAT(rest.events, SizeIs(1));
  EXPECT_EQ(rest.dropped, 1);
  EXPECT_THAT(inbox.take(1, batch, {}).events, SizeIs(2));
}

TEST(TraceInbox, DropsWhatIsNoEvent) {
  // Place and value of what no event has.
  const std::pair<int, std::int64_t> faults[] = {{0, -1},        {0, static_cast<int>(kLastTraceKind) + 1},
                                                 {1, -2},        {2, -2},
                                                 {3, -2},        {4, -2},
                                                 {4, INT64_MAX}, {7, -1},
                                                 {8, -1},        {8, INT64_MAX},
                                                 {9, INT64_MAX}, {9, 999}};
  for (const auto& [place, value] : faults) {
    control::Trace trace = to_wire(std::vector{kEvent}, 0)[0];
    trace.set_numbers(place, value);
    TraceInbox inbox(1, 10);
    const TraceInbox::Batch batch = inbox.take(0, trace, {});
    EXPECT_THAT(batch.events, IsEmpty()) << place;
    EXPECT_EQ(batch.dropped, 1);
  }
  control::Trace cut = to_wire(std::vector{kEvent, kEvent}, 0)[0];
  cut.mutable_numbers()->RemoveLast();
  EXPECT_EQ(TraceInbox(1, 10).take(0, cut, {}).dropped, 1);
  TraceInbox inbox(1, 10);
  EXPECT_THAT(inbox.take(0, to_wire(std::vector{kEvent}, 0)[0], Duration::max()).events, IsEmpty());
  EXPECT_THAT(inbox.take(0, to_wire(std::vector{kEvent}, 0)[0], Duration::min()).events, IsEmpty());
  control::Trace trace;
  trace.set_dropped(-5);
  EXPECT_EQ(inbox.take(0, trace, {}).dropped, 0);
}

}  // namespace
}  // namespace syncopate::experiments

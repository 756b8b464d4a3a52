#include "experiments/cluster/control/trace_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

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
  EXPECT_EQ(batches[0].events_size() + batches[1].events_size() + batches[2].events_size(), 2500);
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
  const std::function<void(control::TraceEvent&)> faults[] = {
      [](auto& event) { event.set_kind(-1); },
      [](auto& event) { event.set_kind(static_cast<int>(kLastTraceKind) + 1); },
      [](auto& event) { event.set_shard(-2); },
      [](auto& event) { event.set_peer(-2); },
      [](auto& event) { event.set_item(-2); },
      [](auto& event) { event.set_bytes(-1); },
      [](auto& event) { event.set_begin(-1); },
      [](auto& event) { event.set_begin(INT64_MAX); },
      [](auto& event) { event.set_length(-1); },
      [](auto& event) { event.set_length(INT64_MAX); },
  };
  for (const auto& fault : faults) {
    control::Trace trace = to_wire(std::vector{kEvent}, 0)[0];
    fault(*trace.mutable_events(0));
    TraceInbox inbox(1, 10);
    const TraceInbox::Batch batch = inbox.take(0, trace, {});
    EXPECT_THAT(batch.events, IsEmpty()) << trace.events(0).DebugString();
    EXPECT_EQ(batch.dropped, 1);
  }
  TraceInbox inbox(1, 10);
  EXPECT_THAT(inbox.take(0, to_wire(std::vector{kEvent}, 0)[0], Duration::max()).events, IsEmpty());
  EXPECT_THAT(inbox.take(0, to_wire(std::vector{kEvent}, 0)[0], Duration::min()).events, IsEmpty());
  control::Trace trace;
  trace.set_dropped(-5);
  EXPECT_EQ(inbox.take(0, trace, {}).dropped, 0);
}

}  // namespace
}  // namespace syncopate::experiments

#include "common/trace/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace syncopate {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(Tracer, RecordsStepsOfItsRangeAlone) {
  ManualClock clock;
  Tracer tracer(clock, {.first = 2, .last = 3}, 10);
  for (std::int64_t step = 0; step < 6; ++step) {
    tracer.begin_step(step);
    TraceSpan span(&tracer, {.kind = TraceKind::kStep, .number = step});
    clock.advance(Duration(5));
    span.end();
    tracer.end_step();
    const TraceSpan between_steps(&tracer, {.kind = TraceKind::kWait});
  }
  const Tracer::Recorded recorded = tracer.take();
  ASSERT_THAT(recorded.events, SizeIs(2));
  EXPECT_EQ(recorded.events[0].number, 2);
  EXPECT_EQ(recorded.events[0].begin, TimePoint(Duration(10)));
  EXPECT_EQ(recorded.events[0].end, TimePoint(Duration(15)));
  EXPECT_EQ(recorded.events[1].number, 3);
  EXPECT_EQ(recorded.dropped, 0);
}

TEST(Tracer, CountsWhatDoesNotFit) {
  const SteadyClock clock;
  Tracer tracer(clock, {0, 0}, 3);
  for (int i = 0; i < 5; ++i) tracer.add({.number = i});
  const Tracer::Recorded recorded = tracer.take();
  EXPECT_THAT(recorded.events, SizeIs(3));
  EXPECT_EQ(recorded.dropped, 2);
  EXPECT_THAT(tracer.take().events, IsEmpty());
}

TEST(Tracer, TellsByAPushsClockWhichStepItEnds) {
  const SteadyClock clock;
  const Tracer each(clock, {.first = 10, .last = 11}, 1);
  EXPECT_FALSE(each.traces_push(10));
  EXPECT_TRUE(each.traces_push(11));
  EXPECT_TRUE(each.traces_push(12));
  EXPECT_FALSE(each.traces_push(13));
  const Tracer eighth(clock, {.first = 10, .last = 20}, 1, 8);
  EXPECT_FALSE(eighth.traces_push(1));
  EXPECT_TRUE(eighth.traces_push(2));  // after step 15
  EXPECT_FALSE(eighth.traces_push(3));
}

TEST(Tracer, StampsTheMembershipEpoch) {
  const SteadyClock clock;
  Tracer tracer(clock, {0, 0}, 1);
  tracer.begin_membership(4);
  tracer.add({});
  EXPECT_EQ(tracer.take().events[0].membership, 4);
}

TEST(Tracer, TakesEventsOfSeveralThreads) {
  const SteadyClock clock;
  constexpr int kThreads = 4, kEach = 1000;
  Tracer tracer(clock, {0, 0}, kThreads * kEach - 10);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&tracer, thread] {
        for (int i = 0; i < kEach; ++i) tracer.add({.peer = thread, .number = i});
      });
    }
  }
  const Tracer::Recorded recorded = tracer.take();
  EXPECT_THAT(recorded.events, SizeIs(kThreads * kEach - 10));
  EXPECT_EQ(recorded.dropped, 10);
}

TEST(TraceSpan, MayBeDiscardedOrContinuedAsAnother) {
  ManualClock clock;
  Tracer tracer(clock, {0, 0}, 10);
  tracer.begin_step(0);
  {
    TraceSpan discarded(&tracer, {.kind = TraceKind::kAnswerTaken});
    discarded.discard();
    TraceSpan phase(&tracer, {.kind = TraceKind::kForward, .number = 7});
    clock.advance(Duration(2));
    phase.next(TraceKind::kBackward);
    clock.advance(Duration(3));
  }
  const Tracer::Recorded recorded = tracer.take();
  ASSERT_THAT(recorded.events, SizeIs(2));
  EXPECT_EQ(recorded.events[0].kind, TraceKind::kForward);
  EXPECT_EQ(recorded.events[1].kind, TraceKind::kBackward);
  EXPECT_EQ(recorded.events[1].number, 7);
  EXPECT_EQ(recorded.events[1].begin, recorded.events[0].end);
  EXPECT_EQ(recorded.events[1].end - recorded.events[1].begin, Duration(3));
}

TEST(TraceSpan, DoesNothingWithoutATracer) {
  TraceSpan span(nullptr, {});
  span.next(TraceKind::kData);
  EXPECT_EQ(span.event(), nullptr);
}

}  // namespace
}  // namespace syncopate

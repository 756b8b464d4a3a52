// Streams and events: what is ordered, what is waited for and for how long, and what time it took.
#include <ctime>
#include <thread>

#include "tests/common/cuda/gpu_test.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using testing_support::all_are;

using CudaEvents = testing_support::GpuTest;

Duration processor_time_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST_F(CudaEvents, AreDoneBeforeTheyAreFirstRecorded) {
  const std::unique_ptr<Event> event = make_event();
  EXPECT_TRUE(device().done(*event));
  EXPECT_TRUE(device().wait(*event, TimePoint{}).ok());
  const std::unique_ptr<Stream> stream = make_stream();
  stream->wait_for(*event);
  EXPECT_TRUE(finish(*stream).ok());
  EXPECT_EQ(device().between(*event, *event), Duration{});
  EXPECT_TRUE(device().status().ok());
}

TEST_F(CudaEvents, AreDoneWhenTheWorkBeforeThemIs) {
  const std::unique_ptr<Event> before = make_event(), behind = make_event();
  compute().record(*before);
  gate_.shut(compute());
  compute().record(*behind);
  EXPECT_TRUE(device().wait(*before, soon()).ok());
  EXPECT_TRUE(device().done(*before));
  EXPECT_FALSE(device().done(*behind));
  gate_.open();
  EXPECT_TRUE(device().wait(*behind, soon()).ok());
  EXPECT_TRUE(device().done(*behind));
}

TEST_F(CudaEvents, PutWorkOfOneStreamBehindWorkOfAnother) {
  constexpr std::size_t kSize = 1 << 20;
  const Result<std::span<std::byte>> memory = device().allocate(kSize);
  const Result<std::span<std::byte>> from = device().allocate_pinned(kSize), to = device().allocate_pinned(kSize);
  ASSERT_TRUE(memory.ok() && from.ok() && to.ok());
  std::ranges::fill(*from, std::byte{3});
  const std::unique_ptr<Stream> other = make_stream();
  const std::unique_ptr<Event> written = make_event(), read = make_event();

  gate_.shut(compute());
  compute().copy_to_device(*from, *memory);
  compute().record(*written);
  other->wait_for(*written);
  other->copy_to_host(*memory, *to);
  other->record(*read);

  EXPECT_EQ(device().wait(*read, SteadyClock().now() + milliseconds(50)).code(), Code::kDeadlineExceeded);
  gate_.open();
  ASSERT_TRUE(device().wait(*read, soon()).ok());
  EXPECT_TRUE(all_are(std::byte{3}, *to));
}

TEST_F(CudaEvents, StreamsDoNotWaitForEachOtherUnasked) {
  const std::unique_ptr<Stream> other = make_stream();
  gate_.shut(compute());
  EXPECT_TRUE(finish(*other).ok());
  gate_.open();
}

TEST_F(CudaEvents, AreWaitedForAsTheyWereWhenItWasAsked) {
  const std::unique_ptr<Stream> other = make_stream();
  const std::unique_ptr<Event> event = make_event();
  compute().record(*event);
  other->wait_for(*event);
  gate_.shut(compute());
  compute().record(*event);  // a later point: `other` does not wait for it
  EXPECT_TRUE(finish(*other).ok());
  EXPECT_FALSE(device().done(*event));
  gate_.open();
  EXPECT_TRUE(device().wait(*event, soon()).ok());
}

TEST_F(CudaEvents, WaitEndsAtItsDeadlineAndLeavesTheCoreToOthers) {
  const std::unique_ptr<Event> event = make_event();
  gate_.shut(compute());
  compute().record(*event);

  const SteadyClock clock;
  const TimePoint begin = clock.now();
  const Duration work = processor_time_of_this_thread();
  const Status status = device().wait(*event, begin + milliseconds(200));
  const Duration waited = clock.now() - begin;
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_GE(waited, milliseconds(200));
  EXPECT_LT(waited, milliseconds(400));
  EXPECT_LT(processor_time_of_this_thread() - work, milliseconds(100));

  // What was too slow has not failed.
  EXPECT_TRUE(device().status().ok());
  EXPECT_EQ(device().wait(*event, begin).code(), Code::kDeadlineExceeded);
  gate_.open();
  EXPECT_TRUE(device().wait(*event, soon()).ok());
  EXPECT_TRUE(device().wait(*event, begin).ok());
}

// A queue of CUDA's takes some thousand pieces of work, and the call that gives one more waits, without a deadline.
TEST_F(CudaEvents, ManyWaitsInVainFillNoQueue) {
  const std::unique_ptr<Event> first = make_event(), second = make_event();
  gate_.shut(compute());
  compute().record(*first);
  compute().record(*second);
  const SteadyClock clock;
  for (int i = 0; i < 1500; ++i) {
    const Event& event = i % 2 == 0 ? *first : *second;
    // Long enough that the host sleeps.
    ASSERT_EQ(device().wait(event, clock.now() + std::chrono::microseconds(200)).code(), Code::kDeadlineExceeded) << i;
  }
  gate_.open();
  EXPECT_TRUE(device().wait(*first, soon()).ok());
  EXPECT_TRUE(device().wait(*second, soon()).ok());
}

TEST_F(CudaEvents, TellTheTimeBetweenThem) {
  const std::unique_ptr<Event> begin = make_event(), end = make_event();
  const SteadyClock clock;
  const TimePoint asked = clock.now();
  compute().record(*begin);
  gate_.shut(compute());
  compute().record(*end);
  std::this_thread::sleep_for(milliseconds(50));
  gate_.open();
  ASSERT_TRUE(device().wait(*end, soon()).ok());
  const Duration took = device().between(*begin, *end);
  EXPECT_GT(took, milliseconds(25));
  EXPECT_LT(took, clock.now() - asked + milliseconds(5));  // two clocks
  EXPECT_EQ(device().between(*begin, *begin), Duration{});
}

TEST_F(CudaEvents, MayBeRecordedAgainAndAgain) {
  const std::unique_ptr<Event> event = make_event();
  for (int round = 0; round < 1000; ++round) {
    compute().record(*event);
    if (round % 100 == 0) {
      EXPECT_TRUE(device().wait(*event, soon()).ok());
    }
  }
  EXPECT_TRUE(device().wait(*event, soon()).ok());
}

TEST_F(CudaEvents, MayGoBeforeTheirPointIsReached) {
  {
    const std::unique_ptr<Stream> stream = make_stream();
    const std::unique_ptr<Event> event = make_event();
    gate_.shut(*stream);
    stream->record(*event);
    compute().wait_for(*event);
  }
  gate_.open();
  EXPECT_TRUE(finish(compute()).ok());
}

}  // namespace
}  // namespace syncopate

#include "allreduce/nccl/call_watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace syncopate::allreduce {
namespace {

using namespace std::chrono_literals;

// A call that returns when it is ended, or else far too late.
class StuckCall {
 public:
  void end() {
    ++ends_;
    ended_.set_value();
  }
  bool returns_when_ended() { return end_.wait_for(60s) == std::future_status::ready; }
  int ends() const { return ends_; }

 private:
  std::atomic<int> ends_ = 0;
  std::promise<void> ended_;
  std::future<void> end_ = ended_.get_future();
};

TEST(CallWatchdog, EndsACallThatDoesNotReturn) {
  StuckCall call;
  CallWatchdog watchdog(40ms, [&] { call.end(); });
  const TimePoint begin = SteadyClock().now();
  watchdog.begin();
  EXPECT_TRUE(call.returns_when_ended());
  EXPECT_TRUE(watchdog.was_ended());
  EXPECT_GE(SteadyClock().now() - begin, 40ms);
  EXPECT_TRUE(watchdog.was_ended());
  EXPECT_EQ(call.ends(), 1);
}

TEST(CallWatchdog, LeavesCallsAloneThatReturn) {
  StuckCall call;
  CallWatchdog watchdog(60s, [&] { call.end(); });
  for (int i = 0; i < 1000; ++i) {
    watchdog.begin();
    ASSERT_FALSE(watchdog.was_ended());
  }
  EXPECT_EQ(call.ends(), 0);
}

TEST(CallWatchdog, EndsTheCallUnderWayWhenInterrupted) {
  StuckCall call;
  CallWatchdog watchdog(3600s, [&] { call.end(); });
  watchdog.begin();
  std::thread other([&] { watchdog.interrupt(); });
  EXPECT_TRUE(call.returns_when_ended());
  EXPECT_TRUE(watchdog.was_ended());
  other.join();
}

TEST(CallWatchdog, EndsACallThatIsBegunOnceInterrupted) {
  StuckCall call;
  CallWatchdog watchdog(3600s, [&] { call.end(); });
  watchdog.interrupt();
  watchdog.begin();
  EXPECT_TRUE(call.returns_when_ended());
  EXPECT_TRUE(watchdog.was_ended());
}

// So that what the call used is not given up while it is still being ended.
TEST(CallWatchdog, WaitsUntilTheEndIsDone) {
  std::promise<void> begun, go_on;
  std::atomic<bool> is_done = false;
  CallWatchdog watchdog(1ms, [&] {
    begun.set_value();
    go_on.get_future().wait();
    is_done = true;
  });
  watchdog.begin();
  begun.get_future().wait();
  std::future<bool> ended = std::async(std::launch::async, [&] { return watchdog.was_ended() && is_done; });
  go_on.set_value();
  EXPECT_TRUE(ended.get());
}

}  // namespace
}  // namespace syncopate::allreduce

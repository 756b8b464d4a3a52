#include "common/pause.h"

#include <gtest/gtest.h>

#include <thread>

namespace syncopate {
namespace {

TEST(Pause, LastsAsLongAsItShould) {
  Pause pause;
  const SteadyClock clock;
  const TimePoint before = clock.now();
  EXPECT_TRUE(pause.wait(std::chrono::milliseconds(20)));
  EXPECT_GE(clock.now() - before, std::chrono::milliseconds(20));
}

// An hour would be the test's timeout.
TEST(Pause, EndsAtOnceWhenItIsInterrupted) {
  Pause pause;
  std::jthread other([&] { EXPECT_FALSE(pause.wait(std::chrono::hours(1))); });
  pause.interrupt();
  other.join();
  EXPECT_FALSE(pause.wait(std::chrono::hours(1))) << "nor does the next one begin";
}

}  // namespace
}  // namespace syncopate

#include "common/transport/shm_doorbell.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "tests/support/cluster.h"

namespace syncopate {
namespace {

// As an endpoint sleeps, until it is told to stop.
void sleep_on(ShmDoorbell& bell, const std::stop_token& stop) {
  while (true) {
    bell.sleeping.store(1);
    const std::uint32_t rings = bell.rings.load();
    if (stop.stop_requested()) return;
    futex_wait(bell.rings, rings, std::chrono::seconds(1));
    bell.sleeping.store(0);
  }
}

TEST(ShmDoorbell, WakesASleeper) {
  const auto memory = std::make_unique<ShmDoorbell>();  // GCC's address sanitizer aligns none of 64 bytes on a stack
  ShmDoorbell& bell = *memory;
  std::jthread sleeper([&](const std::stop_token& stop) { sleep_on(bell, stop); });
  const TimePoint deadline = testing_support::soon();
  bool woken = false;  // not by a ring that comes before it sleeps
  while (!woken && SteadyClock().now() < deadline) woken = bell.ring();
  EXPECT_TRUE(woken);
  sleeper.request_stop();
  bell.ring();
}

TEST(ShmDoorbell, IsHeardByASleeperThatWasAboutToSleep) {
  const auto memory = std::make_unique<ShmDoorbell>();  // GCC's address sanitizer aligns none of 64 bytes on a stack
  ShmDoorbell& bell = *memory;
  bell.sleeping.store(1);
  const std::uint32_t rings = bell.rings.load();
  EXPECT_FALSE(bell.ring());
  const TimePoint begin = SteadyClock().now();
  futex_wait(bell.rings, rings, std::chrono::seconds(60));
  EXPECT_LT(SteadyClock().now(), begin + std::chrono::seconds(60));
}

TEST(ShmDoorbell, WakesNobodyWhereNobodySleeps) {
  const auto memory = std::make_unique<ShmDoorbell>();  // GCC's address sanitizer aligns none of 64 bytes on a stack
  ShmDoorbell& bell = *memory;
  EXPECT_FALSE(bell.ring());
  EXPECT_EQ(bell.rings.load(), 1u);
}

}  // namespace
}  // namespace syncopate

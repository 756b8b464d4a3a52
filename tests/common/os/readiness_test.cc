#include "common/os/readiness.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "common/os/file_descriptor.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

FileDescriptor event() { return FileDescriptor(eventfd(0, EFD_CLOEXEC)); }

TEST(Readiness, IsSeenAtOnce) {
  const FileDescriptor ready = event(), other = event();
  EXPECT_FALSE(is_readable(ready.get()));
  eventfd_write(ready.get(), 1);
  EXPECT_TRUE(is_readable(ready.get()));
  std::array<pollfd, 3> items{pollfd{other.get(), POLLIN, 0}, pollfd{ready.get(), POLLIN, 0}, pollfd{-1, POLLIN, 0}};
  EXPECT_TRUE(ready_before(kNoDeadline, items));
  EXPECT_EQ(items[0].revents, 0);
  EXPECT_EQ(items[1].revents, POLLIN);
  EXPECT_TRUE(ready_before(TimePoint::min(), other.get(), POLLOUT));
}

TEST(Readiness, IsNotThereWhenTheDeadlineHasPassedAndNotBefore) {
  const FileDescriptor silent = event();
  const TimePoint deadline = SteadyClock().now() + milliseconds(30);
  EXPECT_FALSE(ready_before(deadline, silent.get()));
  EXPECT_GE(SteadyClock().now(), deadline);
  EXPECT_FALSE(ready_before(deadline - milliseconds(1000), silent.get()));
}

TEST(Readiness, MayComeBeforeADeadlineThatIsFarAway) {
  const FileDescriptor late = event();
  std::thread writer([&] { eventfd_write(late.get(), 1); });
  EXPECT_TRUE(ready_before(kNoDeadline - Duration(1), late.get()));
  writer.join();
}

TEST(Readiness, IsWaitedForBehindASignalThatIsHandled) {
  struct sigaction before {
  }, handler{};
  handler.sa_handler = [](int) {};
  sigaction(SIGUSR1, &handler, &before);
  const FileDescriptor silent = event();
  const pthread_t waiting = pthread_self();
  const TimePoint deadline = SteadyClock().now() + milliseconds(100);
  std::thread disturber([&] {
    while (SteadyClock().now() < deadline - milliseconds(20)) {
      pthread_kill(waiting, SIGUSR1);
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  EXPECT_FALSE(ready_before(deadline, silent.get()));
  EXPECT_GE(SteadyClock().now(), deadline);
  disturber.join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace syncopate

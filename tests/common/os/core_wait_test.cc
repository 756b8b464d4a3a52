#include "common/os/core_wait.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <barrier>
#include <ctime>
#include <thread>

namespace syncopate {
namespace {

constexpr Duration kWork = std::chrono::milliseconds(30);

Duration cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Two threads that are ready at the same time and share a core wait for it as long as the other one needs, together.
TEST(CoreWait, IsWhatThreadsThatShareACoreWaitForEachOther) {
  if (!CoreWait::of_this_thread()) GTEST_SKIP() << "this system does not tell";
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  std::barrier begin(2);
  std::array<Duration, 2> waited{};
  {
    std::array<std::jthread, 2> threads;
    for (std::size_t i = 0; i < 2; ++i) {
      threads[i] = std::jthread([&, i] {
        pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        const std::optional<CoreWait> wait = CoreWait::of_this_thread();
        begin.arrive_and_wait();
        const Duration before = wait->total();
        for (const Duration from = cpu_time(); cpu_time() - from < kWork;) continue;
        waited[i] = wait->total() - before;
      });
    }
  }
  EXPECT_GT(waited[0] + waited[1], kWork / 2);
}

}  // namespace
}  // namespace syncopate

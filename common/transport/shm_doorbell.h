// The doorbell on which the owner of shared memory sleeps, and how it waits for what others write there.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "common/clock.h"
#include "common/os/futex.h"
#include "common/status.h"
#include "common/transport/waits.h"

namespace syncopate {

// Lies in memory that processes share; it has one sleeper.
struct alignas(64) ShmDoorbell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleeping;

  // Rings the bell, and returns whether a sleeper was woken. Write what the sleeper waits for before calling it.
  bool ring() {
    rings.fetch_add(1);
    return sleeping.load() != 0 && futex_wake(rings) > 0;
  }
};

// Waits at the owner's doorbell. One thread, except for interrupt().
class ShmWaiter {
 public:
  // `bell` must outlive the waiter.
  explicit ShmWaiter(ShmDoorbell& bell) : bell_(bell) {}

  // Returns once `ready` returns true, or fails with deadline exceeded (with message `late`) or cancelled. Polls for a
  // moment, then sleeps; calls `look_up` about once per kLookUpEvery.
  template <typename Ready, typename LookUp>
  Status wait_for(Ready&& ready, TimePoint deadline, const char* late, LookUp&& look_up) {
    if (ready()) return Status();
    TimePoint now = clock_.now();
    for (const TimePoint spin_until = std::min(now + kSpinBeforeSleep, deadline); now < spin_until;
         now = clock_.now()) {
      sched_yield();
      if (ready()) return Status();
    }
    while (true) {
      bell_.sleeping.store(1);
      const std::uint32_t rings = bell_.rings.load();
      const bool is_ready = ready();
      if (is_ready || interrupted_.load() || now >= deadline) {
        bell_.sleeping.store(0);
        if (is_ready) return Status();
        if (interrupted_.load()) return Status::cancelled("interrupted");
        return Status::deadline_exceeded(late);
      }
      futex_wait(bell_.rings, rings, std::min<Duration>(kLookUpEvery, deadline - now));
      bell_.sleeping.store(0);
      now = clock_.now();
      if (now >= next_look_) {
        look_up();
        next_look_ = now + kLookUpEvery;
      }
    }
  }

  // Ends the current wait and all later ones. Any thread.
  void interrupt() {
    interrupted_.store(true);
    bell_.ring();
  }

 private:
  ShmDoorbell& bell_;
  SteadyClock clock_;
  TimePoint next_look_{};
  std::atomic<bool> interrupted_{false};
};

}  // namespace syncopate

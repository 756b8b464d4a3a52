// Patience: extends deadlines after a standstill. If this process or the coordinator did not run for a while (somebody
// stopped it, or the machine was suspended or stalled), waits for others do not expire before all have had their whole
// time again.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "common/clock.h"

namespace syncopate {

// Shared by a process's threads. Lock-free.
class Patience {
 public:
  // Sets how long a wait for others may last.
  void set_timeout(Duration timeout) { timeout_.store(timeout.count(), std::memory_order_relaxed); }
  Duration timeout() const { return Duration(timeout_.load(std::memory_order_relaxed)); }

  // Some process did not run until just before `now`.
  void excuse(TimePoint now) {
    const Duration::rep until = (now + timeout()).time_since_epoch().count();
    Duration::rep before = until_.load(std::memory_order_relaxed);
    while (before < until && !until_.compare_exchange_weak(before, until)) {
    }
  }
  // No wait expires before this time.
  TimePoint until() const { return TimePoint(Duration(until_.load(std::memory_order_relaxed))); }

 private:
  std::atomic<Duration::rep> timeout_ = Duration(std::chrono::seconds(30)).count();
  std::atomic<Duration::rep> until_ = 0;
};

// One wait with a deadline, in slices. Used by one thread.
class PatientWait {
 public:
  // The wait begins at `now`. `patience` must outlive it.
  PatientWait(Patience& patience, TimePoint deadline, TimePoint now)
      : patience_(patience), deadline_(deadline), last_(now) {}

  // Returns whether this is a wait for others, to which patience applies. A mere look for new messages has a shorter
  // deadline.
  static bool is_one(const Patience& patience, TimePoint deadline, TimePoint now) {
    return deadline - now >= patience.timeout() / 4;
  }

  // Returns whether this process, which last looked at time `last`, has not run for a while since then.
  static bool did_not_run(TimePoint last, TimePoint now) { return now - last > kSlice + kOverslept; }

  // Returns until when to wait before calling this again; none if the wait has expired.
  std::optional<TimePoint> next(TimePoint now) {
    if (did_not_run(last_, now)) patience_.excuse(now);
    last_ = now;
    const TimePoint end = std::max(deadline_, patience_.until());
    return now >= end ? std::nullopt : std::optional(std::min(end, now + kSlice));
  }

 private:
  static constexpr Duration kSlice = std::chrono::milliseconds(250);
  static constexpr Duration kOverslept = std::chrono::seconds(1);

  Patience& patience_;
  const TimePoint deadline_;
  TimePoint last_;
};

}  // namespace syncopate

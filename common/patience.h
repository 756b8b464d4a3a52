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
  void excuse(TimePoint now) { set_to_later(until_, now + timeout()); }
  // No wait expires before this time.
  TimePoint until() const { return TimePoint(Duration(until_.load(std::memory_order_relaxed))); }

  // One thread, which nothing keeps from it, calls this several times a second: where it does not, the process has not
  // run. Without such a thread only a wait itself finds that out.
  void tick(TimePoint now) {
    excuse_if_behind(now);
    set_to_later(tick_, now);
  }
  // For a wait that looks at its deadline `now`, which may be before that thread has run again. However long ago the
  // deadline was set, and whatever the waiting thread did meanwhile, this process's standstill does not count.
  void excuse_if_behind(TimePoint now) {
    const Duration::rep last = tick_.load(std::memory_order_relaxed);
    if (last != 0 && now - TimePoint(Duration(last)) > kRegular) excuse(now);
  }

 private:
  static constexpr Duration kRegular = std::chrono::seconds(1);

  static void set_to_later(std::atomic<Duration::rep>& time, TimePoint other) {
    const Duration::rep later = other.time_since_epoch().count();
    Duration::rep before = time.load(std::memory_order_relaxed);
    while (before < later && !time.compare_exchange_weak(before, later)) {
    }
  }

  std::atomic<Duration::rep> timeout_ = Duration(std::chrono::seconds(30)).count();
  std::atomic<Duration::rep> until_ = 0;
  std::atomic<Duration::rep> tick_ = 0;  // the last one
};

// One wait for others with a deadline, in slices. Used by one thread.
class PatientWait {
 public:
  // The wait begins at `now`. `patience` must outlive it.
  PatientWait(Patience& patience, TimePoint deadline, TimePoint now)
      : patience_(patience), deadline_(deadline), last_(now) {}

  // Returns until when to wait before calling this again; none if the wait has expired.
  std::optional<TimePoint> next(TimePoint now) {
    patience_.excuse_if_behind(now);
    if (now - last_ > kSlice + kOverslept) patience_.excuse(now);
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

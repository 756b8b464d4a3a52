// Pause: a sleep that another thread can end.
#pragma once

#include <memory>
#include <mutex>

#include "common/clock.h"
#include "common/threads.h"

namespace syncopate {

class Pause {
 public:
  // `threads`, to which those that sleep and interrupt belong, outlives the pause.
  explicit Pause(Threads& threads = os_threads()) : clock_(threads.clock()), monitor_(threads.make_monitor()) {}

  // Sleeps for `duration`. Returns false at once if interrupted before or meanwhile.
  bool wait(Duration duration) {
    std::unique_lock lock(*monitor_);
    if (duration <= Duration::zero()) return !interrupted_;  // the kernel takes up to 50 us for a sleep of nothing
    const TimePoint end = clock_.now() + duration;
    while (!interrupted_ && clock_.now() < end) monitor_->wait_until(end);
    return !interrupted_;
  }

  // Ends all current and future waits. Any thread.
  void interrupt() {
    const std::lock_guard lock(*monitor_);
    interrupted_ = true;
    monitor_->notify_all();
  }

 private:
  const Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  bool interrupted_ = false;
};

}  // namespace syncopate

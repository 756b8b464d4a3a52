// Pause: a sleep that another thread can end.
#pragma once

#include <condition_variable>
#include <mutex>

#include "common/clock.h"

namespace syncopate {

class Pause {
 public:
  // Sleeps for `duration`. Returns false at once if interrupted before or meanwhile.
  bool wait(Duration duration) {
    std::unique_lock lock(mutex_);
    if (duration <= Duration::zero()) return !interrupted_;  // the kernel takes up to 50 us for a sleep of nothing
    return !ended_.wait_for(lock, duration, [&] { return interrupted_; });
  }

  // Ends all current and future waits. Any thread.
  void interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    ended_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool interrupted_ = false;
};

}  // namespace syncopate

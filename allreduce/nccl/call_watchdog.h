// CallWatchdog: ends calls that do not return, from a thread of its own. It knows nothing of what is called.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "common/clock.h"

namespace syncopate::allreduce {

// One thread makes the calls; any thread may interrupt.
class CallWatchdog {
 public:
  // `end` has the call under way return. It runs on the watchdog's thread, once at most, when a call has lasted for
  // `limit` (it may be found an eighth of that later), or when it was interrupted.
  CallWatchdog(Duration limit, std::function<void()> end);
  ~CallWatchdog();
  CallWatchdog(const CallWatchdog&) = delete;
  CallWatchdog& operator=(const CallWatchdog&) = delete;

  // Stand before and behind a call. The second returns whether the call was ended, and then waits until `end` is done:
  // what the call has returned means nothing. No call may follow.
  void begin();
  bool was_ended();

  // Ends the call under way and those that are begun from now on, unless they return at once.
  void interrupt();

 private:
  enum class State { kIdle, kCalling, kEnding, kEnded };

  void watch();

  const Duration limit_;
  const std::function<void()> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  TimePoint deadline_{};  // of the call under way
  bool is_interrupted_ = false;
  bool is_over_ = false;
  std::thread thread_;  // uses all others
};

}  // namespace syncopate::allreduce

#include "allreduce/nccl/call_watchdog.h"

#include <utility>

namespace syncopate::allreduce {
namespace {

// Once interrupted, a call is ended soon, but hardly one that returns by itself.
constexpr Duration kPatienceOnceInterrupted = std::chrono::milliseconds(20);

TimePoint now() { return SteadyClock().now(); }

}  // namespace

CallWatchdog::CallWatchdog(Duration limit, std::function<void()> end)
    : limit_(limit), end_(std::move(end)), thread_([this] { watch(); }) {}

CallWatchdog::~CallWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Nobody is woken: a call costs no more than a look at the clock.
void CallWatchdog::begin() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kIdle) return;
  deadline_ = now() + (is_interrupted_ ? kPatienceOnceInterrupted : limit_);
  state_ = State::kCalling;
}

bool CallWatchdog::was_ended() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ != State::kEnding; });
  if (state_ == State::kEnded) return true;
  state_ = State::kIdle;
  return false;
}

void CallWatchdog::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    is_interrupted_ = true;
    if (state_ == State::kCalling) deadline_ = now() + kPatienceOnceInterrupted;
  }
  changed_.notify_all();
}

void CallWatchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    changed_.wait_for(lock, is_interrupted_ ? kPatienceOnceInterrupted : limit_ / 8);
    if (is_over_ || state_ != State::kCalling || now() < deadline_) continue;
    state_ = State::kEnding;
    lock.unlock();
    end_();
    lock.lock();
    state_ = State::kEnded;
    changed_.notify_all();
    return;
  }
}

}  // namespace syncopate::allreduce

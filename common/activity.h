// Activity: what a process is doing right now, for its heartbeats and for the verdict if it stops doing it.
#pragma once

#include <atomic>
#include <cstdint>

namespace syncopate {

// Written by the thread that works, read by the thread that sends heartbeats. Lock-free.
class Activity {
 public:
  // `operation` must be a string literal: only its address is kept.
  void set(const char* operation, std::int64_t step) {
    step_.store(step, std::memory_order_relaxed);
    operation_.store(operation, std::memory_order_release);
  }

  const char* operation() const { return operation_.load(std::memory_order_acquire); }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }

 private:
  std::atomic<const char*> operation_{"starting"};
  std::atomic<std::int64_t> step_{0};
};

}  // namespace syncopate

// Activity: what a process is doing right now, for its heartbeats, and for the verdict if it hangs.
#pragma once

#include <atomic>
#include <cstdint>

namespace syncopate {

// Written by the thread that works, read by the thread that sends heartbeats. Lock-free.
class Activity {
 public:
  // Begins `operation`, a string literal (only its address is kept). It is expected to end within the run's timeout.
  void set(const char* operation, std::int64_t step) { note(operation, step, false); }
  // Begins an operation that may last: serving, waiting for others to finish.
  void rest(const char* operation, std::int64_t step) { note(operation, step, true); }

  const char* operation() const { return operation_.load(std::memory_order_acquire); }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }
  bool may_last() const { return may_last_.load(std::memory_order_relaxed); }
  // Changes with every set() and rest().
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  void note(const char* operation, std::int64_t step, bool may_last) {
    step_.store(step, std::memory_order_relaxed);
    may_last_.store(may_last, std::memory_order_relaxed);
    changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    operation_.store(operation, std::memory_order_release);
  }

  std::atomic<const char*> operation_{"starting"};
  std::atomic<std::int64_t> step_{0};
  std::atomic<bool> may_last_{false};
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace syncopate

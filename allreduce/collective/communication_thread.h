// CommunicationThread: carries out work in the order in which it was handed over, beside the thread that hands it over.
// Denormals are flushed meanwhile, on whichever of the two threads: sums that every rank makes for itself must not
// differ by who was at hand.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "common/thread_failure.h"

namespace syncopate::allreduce {

class CommunicationThread {
 public:
  CommunicationThread();
  // Waits for the work under way, not for what is queued.
  ~CommunicationThread();

  // Returns the ticket of this piece of work: 1 for the first, then 2, ... Never blocks for long.
  std::uint64_t submit(std::function<void()> work);

  // Returns when the work of `ticket` and all before it has been done. If the communication thread has not begun it
  // yet, the caller's thread does it: a wake-up is saved when there is nothing left to overlap with. Throws what the
  // communication thread's work has thrown.
  void wait_for(std::uint64_t ticket);

 private:
  // Does the next piece of work; `lock` is held on entry and exit, not meanwhile.
  void do_next(std::unique_lock<std::mutex>& lock);
  void loop(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any submitted_;
  std::condition_variable done_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t submitted_count_ = 0;
  std::uint64_t done_count_ = 0;
  bool busy_ = false;  // one piece at a time, whichever thread does it
  ThreadFailure failure_;
  std::jthread thread_;
};

}  // namespace syncopate::allreduce

// CommunicationThread: carries out work in order of submission, beside the thread that submits it. Denormals are
// flushed during the work on either thread: sums that every rank computes for itself must not depend on which thread
// did.
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
  // Waits for the work that is running, not for queued work.
  ~CommunicationThread();

  // Returns the ticket of this piece of work: 1 for the first, then 2, and so on. Never blocks for long.
  std::uint64_t submit(std::function<void()> work);

  // Returns when the work of `ticket` and all before it has been done. If the communication thread has not begun it
  // yet, the caller's thread does it, which saves a wake-up when there is nothing left to overlap with. Rethrows what
  // the communication thread's work has thrown.
  void wait_for(std::uint64_t ticket);

 private:
  // Does the next piece of work. `lock` is held on entry and exit, but not during the work.
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

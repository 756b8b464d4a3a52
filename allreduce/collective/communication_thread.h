// CommunicationThread: carries out work in order of submission, beside the thread that submits it. Denormals are
// flushed during the work on either thread: sums that every rank computes for itself must not depend on which thread
// did.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "common/thread_failure.h"
#include "common/threads.h"

namespace syncopate::allreduce {

class CommunicationThread {
 public:
  // For work that lies behind what a caller has done itself, the communication thread is woken only if the caller stays
  // away for at least `worth_waking`. On real processors that is kWorthWaking: where all cores are busy the thread
  // takes one from somebody when it wakes, and ranks that meet in the work wait for one another's turns. In virtual
  // time it is zero.
  static constexpr Duration kWorthWaking = std::chrono::microseconds(100);
  explicit CommunicationThread(Threads& threads = os_threads())
      : CommunicationThread(threads, &threads == &os_threads() ? kWorthWaking : Duration::zero()) {}
  CommunicationThread(Threads& threads, Duration worth_waking);
  // Waits for the work that is running, not for queued work.
  ~CommunicationThread();

  enum class Begin {
    kNow,            // beside the caller
    kWhenWaitedFor,  // by the thread that waits, unless the communication thread is awake for other work
  };
  // Returns the ticket of this piece of work: 1 for the first, then 2, and so on. Never blocks for long.
  std::uint64_t submit(std::function<void()> work, Begin begin = Begin::kNow);

  // Returns when the work of `ticket` and all before it has been done. If the communication thread has not begun it
  // yet, the caller's thread does it, which saves a wake-up when there is nothing left to overlap with. `away`
  // is how long the caller expects to be busy before it waits for the work behind it. Several threads may wait.
  // Rethrows what the communication thread's work has thrown.
  void wait_for(std::uint64_t ticket, Duration away = Duration::max());

  // Returns the last ticket whose work has been done.
  std::uint64_t done() const;

  // Returns whether something that was submitted has not been done yet.
  bool has_unfinished() const;

 private:
  using Lock = std::unique_lock<Monitor>;
  struct Work {
    std::function<void()> run;
    Begin begin;
  };

  // Does the next piece of work. `lock` is held on entry and exit, but not during the work.
  void do_next(Lock& lock);
  void loop();

  // Guards all that follows. The communication thread waits on it for work, other threads for work to be done: hardly
  // ever both at once.
  const std::unique_ptr<Monitor> monitor_;
  const Duration worth_waking_;
  std::deque<Work> queue_;
  std::uint64_t submitted_count_ = 0;
  std::uint64_t done_count_ = 0;
  bool busy_ = false;  // one piece at a time, whichever thread does it
  int waiting_ = 0;    // threads in wait_for() that wait for another's work
  bool ends_ = false;
  ThreadFailure failure_;
  std::unique_ptr<Threads::Handle> thread_;  // last: it works on all of the above
};

}  // namespace syncopate::allreduce

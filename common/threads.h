// Threads: where a thread comes from, and what it waits on. Both are handed in, so that code with a thread of its own
// runs on threads of the operating system as well as in virtual time, as actors of a simulated world
// (simulation/world_threads.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"

namespace syncopate {

// A mutex with one condition. Any of its threads.
class Monitor {
 public:
  virtual ~Monitor() = default;

  // With these it is a lock for std::unique_lock and std::lock_guard.
  virtual void lock() = 0;
  virtual void unlock() = 0;

  // Called with the monitor locked: unlocks it, waits for notify_all() or the deadline, and locks it again. May return
  // early: look at what you wait for.
  virtual void wait_until(TimePoint deadline) = 0;
  void wait() { wait_until(TimePoint::max()); }
  virtual void notify_all() = 0;
};

class Threads {
 public:
  // A thread. Its destructor waits for its end.
  class Handle {
   public:
    virtual ~Handle() = default;
  };

  virtual ~Threads() = default;

  // The time in which the deadlines of its monitors are given.
  virtual const Clock& clock() const = 0;
  virtual std::unique_ptr<Monitor> make_monitor() = 0;
  // kBackground: it leaves the processors to others, but for about a tenth of one.
  enum class Priority { kUsual, kBackground };
  // `body` must not throw. `name` is for errors and debuggers.
  virtual std::unique_ptr<Handle> start(const std::string& name, std::function<void()> body,
                                        Priority priority = Priority::kUsual) = 0;
};

// The operating system's.
Threads& os_threads();

}  // namespace syncopate

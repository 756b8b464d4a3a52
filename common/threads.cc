#include "common/threads.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace syncopate {
namespace {

class OsMonitor final : public Monitor {
 public:
  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }

  void wait_until(TimePoint deadline) override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    if (deadline == TimePoint::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, deadline);
    }
    lock.release();
  }
  void notify_all() override { changed_.notify_all(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class OsThread final : public Threads::Handle {
 public:
  OsThread(std::function<void()> body, Threads::Priority priority)
      : thread_([body = std::move(body), priority] {
          if (priority == Threads::Priority::kBackground) make_nice();
          body();
        }) {}

 private:
  static void make_nice() {
    constexpr int kNiceness = 10;  // about a tenth of a core beside a thread that never waits
    // On Linux this changes only this thread (setpriority(2), "C library/kernel differences").
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNiceness);
  }

  std::jthread thread_;
};

class OsThreads final : public Threads {
 public:
  const Clock& clock() const override { return clock_; }
  std::unique_ptr<Monitor> make_monitor() override { return std::make_unique<OsMonitor>(); }
  std::unique_ptr<Handle> start(const std::string&, std::function<void()> body, Priority priority) override {
    return std::make_unique<OsThread>(std::move(body), priority);
  }

 private:
  SteadyClock clock_;
};

}  // namespace

Threads& os_threads() {
  static OsThreads threads;
  return threads;
}

}  // namespace syncopate

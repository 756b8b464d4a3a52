#include "experiments/cluster/tasks/launcher_watch.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "common/os/process_handle.h"
#include "experiments/cluster/coordinator/interrupts.h"

namespace syncopate::experiments {
namespace {

constexpr std::chrono::milliseconds kLookEvery{250};

void watch(const std::stop_token& stop, pid_t launcher) {
  // Signals are for the thread that polls them.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && getppid() == launcher) {
    ended.wait_for(lock, stop, kLookEvery, [] { return false; });
  }
  if (stop.stop_requested()) return;
  const Result<ProcessHandle> self = ProcessHandle::of(getpid());
  if (self.ok()) (void)ask_to_end(*self, SIGTERM);
}

}  // namespace

LauncherWatch::LauncherWatch()
    : thread_([launcher = getppid()](const std::stop_token& stop) { watch(stop, launcher); }) {}

}  // namespace syncopate::experiments

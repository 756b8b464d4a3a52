#include "experiments/checkpoint/background_writer.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace syncopate::experiments {
namespace {

// Training comes first, but a checkpoint must also complete on a busy machine. This niceness leaves it about a tenth of
// a core beside a thread that never waits.
constexpr int kNiceness = 10;

}  // namespace

BackgroundWriter::BackgroundWriter() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

BackgroundWriter::~BackgroundWriter() = default;

TrainingState* BackgroundWriter::begin() {
  failure_.rethrow();
  const std::lock_guard lock(mutex_);
  if (write_) return nullptr;
  state_.clear();
  return &state_;
}

void BackgroundWriter::submit(Write write) {
  {
    const std::lock_guard lock(mutex_);
    write_ = std::move(write);
  }
  changed_.notify_all();
}

void BackgroundWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !write_; });
  failure_.rethrow();
}

void BackgroundWriter::run(const std::stop_token& stop) {
  // On Linux this changes only this thread (setpriority(2), "C library/kernel differences").
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNiceness);
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return static_cast<bool>(write_); })) {
    lock.unlock();
    failure_.carry([&] { write_(state_, stop); });
    lock.lock();
    write_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace syncopate::experiments

#include "experiments/checkpoint/background_writer.h"

#include <mutex>
#include <utility>

namespace syncopate::experiments {

// Training comes first, but a checkpoint must also complete on a busy machine.
BackgroundWriter::BackgroundWriter(Threads& threads)
    : clock_(threads.clock()),
      monitor_(threads.make_monitor()),
      thread_(threads.start(
          "checkpoint writer", [this] { run(); }, Threads::Priority::kBackground)) {}

BackgroundWriter::~BackgroundWriter() {
  stop_.request_stop();
  {
    const std::lock_guard lock(*monitor_);
    stops_ = true;
    monitor_->notify_all();
  }
  thread_.reset();
}

TrainingState* BackgroundWriter::begin() {
  failure_.rethrow();
  const std::lock_guard lock(*monitor_);
  if (write_) return nullptr;
  state_.clear();
  return &state_;
}

void BackgroundWriter::submit(Write write) {
  const std::lock_guard lock(*monitor_);
  write_ = std::move(write);
  monitor_->notify_all();
}

void BackgroundWriter::finish_by(TimePoint deadline) {
  const std::lock_guard lock(*monitor_);
  while (write_ && clock_.now() < deadline) monitor_->wait_until(deadline);
  failure_.rethrow();
}

void BackgroundWriter::run() {
  std::unique_lock lock(*monitor_);
  while (true) {
    while (!write_ && !stops_) monitor_->wait();
    if (!write_) return;
    lock.unlock();
    failure_.carry([&] { write_(state_, stop_.get_token()); });
    lock.lock();
    write_ = nullptr;
    monitor_->notify_all();
  }
}

}  // namespace syncopate::experiments

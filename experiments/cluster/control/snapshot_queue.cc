#include "experiments/cluster/control/snapshot_queue.h"

#include <utility>

namespace syncopate::experiments {

void SnapshotQueue::push(WeightsSnapshot snapshot) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(snapshot));
  }
  changed_.notify_all();
}

void SnapshotQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

Result<WeightsSnapshot> SnapshotQueue::pop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
  if (queue_.empty()) return Status::cancelled("no more snapshots");
  WeightsSnapshot snapshot = std::move(queue_.front());
  queue_.pop_front();
  return snapshot;
}

}  // namespace syncopate::experiments

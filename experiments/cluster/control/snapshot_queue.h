// SnapshotQueue: snapshots that have come and wait to be evaluated, in the order in which they came.
//
// Any thread may call any method: the control thread pushes, the evaluator's pops. Its mutex is held while a snapshot
// is moved, no longer.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "common/status.h"
#include "experiments/cluster/control/weights_snapshot.h"

namespace syncopate::experiments {

class SnapshotQueue {
 public:
  void push(WeightsSnapshot snapshot);
  // There will be no more. What has come may still be popped.
  void close();
  // The oldest; waits until there is one. Cancelled once the queue is closed and empty.
  Result<WeightsSnapshot> pop();

 private:
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<WeightsSnapshot> queue_;
  bool closed_ = false;
};

}  // namespace syncopate::experiments

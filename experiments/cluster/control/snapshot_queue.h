// SnapshotQueue: snapshots that have arrived and wait to be evaluated, in order of arrival.
//
// Any thread may call any method: the control thread pushes, the evaluator's thread pops. Its mutex is only held while
// a snapshot is moved.
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
  // There will be no more. Snapshots that have arrived may still be popped.
  void close();
  // Waits for a snapshot and returns the oldest. Fails with cancelled once the queue is closed and empty.
  Result<WeightsSnapshot> pop();

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<WeightsSnapshot> queue_;
  bool closed_ = false;
};

}  // namespace syncopate::experiments

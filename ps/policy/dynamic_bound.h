// DynamicBound: a staleness bound between MIN and MAX that grows for a worker where that makes it wait less, after Zhao
// et al. 2019, "Dynamic stale synchronous parallel distributed training for deep learning" (DSSP), algorithms 1 and 2.
// Pure: it takes times as arguments.
//
// Where a push finds its worker more than MIN pushes ahead of the slowest, and no worker is further ahead, the
// controller predicts from the last two pushes of it and of the slowest worker when either will push next, and next
// again. It lets the worker make r more pushes, 0 <= r <= MAX - MIN, after which its push is predicted to lie nearest
// to one of the slowest worker's; of several the least r. Then MIN counts again.
//
// What differs from the paper: each chunk decides by itself, by the arrival of its own pushes, so that a worker has the
// least of its chunks' bounds. Where several workers are the slowest, the one that pushed first is taken. MAX holds
// always: the worker is never let more than MAX ahead, also where the slowest worker falls behind the prediction. A
// worker that has pushed only once, or two pushes at one time, predict nothing: r is 0. `dynamic:S:S` is `bounded:S`.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/policy/staleness_bound.h"

namespace syncopate::ps {

// The last two pushes of a worker.
struct PushTimes {
  TimePoint latest{};
  Duration interval{};  // from the one before it; 0: there is none
};

// Returns how many more pushes, at most `most`, the worker that has just pushed may make before it waits for `slowest`.
std::int64_t granted_pushes(const PushTimes& fastest, const PushTimes& slowest, std::int64_t most);

class DynamicBound : public StalenessBound {
 public:
  // Requires 0 <= min <= max.
  DynamicBound(std::int64_t min, std::int64_t max, int workers);
  void on_push(const Step& step, const WorkerClocks& clocks) override;
  std::int64_t of(int worker) const override;

 private:
  struct Worker {
    bool has_pushed = false;
    PushTimes times;
    std::int64_t clock = 0;
    std::int64_t granted_to = 0;  // the last clock at which it may lead by more than MIN
  };

  Worker& worker(int rank) { return workers_[static_cast<std::size_t>(rank)]; }
  const Worker& worker(int rank) const { return workers_[static_cast<std::size_t>(rank)]; }

  std::int64_t min_;
  std::int64_t max_;
  std::vector<Worker> workers_;
};

}  // namespace syncopate::ps

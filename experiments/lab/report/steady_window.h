// The steady window of a run: the time in which all workers train at once, after their warm-up. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/clock.h"
#include "common/step_record.h"

namespace syncopate::experiments {

struct WorkerSteps {
  int rank = 0;
  bool lost = false;                  // it ended early: its samples count, but it does not end the window
  std::span<const StepRecord> steps;  // in order
};

// A step, which lies elsewhere.
struct StepOfWorker {
  int worker = 0;
  const StepRecord* step = nullptr;
};

struct TimeWindow {
  TimePoint begin = TimePoint::min();
  TimePoint end = TimePoint::max();
};

// Returns the step with which a worker's warm-up is over: its first `warmup_steps` steps, in a run that goes on from a
// checkpoint, too.
std::int64_t warm_from(const WorkerSteps& worker, std::int64_t warmup_steps);

// Returns the time from when the last worker had finished its warm-up until the first finished its last step. None
// unless every worker (a lost one may be missing) has steps after its warm-up, and these overlap.
std::optional<TimeWindow> steady_window(std::span<const WorkerSteps> workers, std::int64_t warmup_steps);

// Returns the steps after their worker's warm-up that ended within the window, worker by worker.
std::vector<StepOfWorker> steps_within(std::span<const WorkerSteps> workers, const TimeWindow& window,
                                       std::int64_t warmup_steps);
std::vector<StepOfWorker> all_steps(std::span<const WorkerSteps> workers);

}  // namespace syncopate::experiments

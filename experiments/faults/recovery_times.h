// RecoveryTimes: how long after a fault training went on, from the workers' step records. Pure.
//
// A step counts that was begun after the fault: one that was under way may have had all it needed before.
#pragma once

#include <optional>
#include <span>

#include "common/clock.h"
#include "experiments/report/run_report.h"

namespace syncopate::experiments {

struct RecoveryTimes {
  // From the fault to the end of the first step that some worker has begun after it; none: nobody has ended one.
  std::optional<Duration> first;
  // To that of the last of the workers that have ended such a step: all that are there have gone on.
  std::optional<Duration> all;
};

// `workers` in the order of their steps' ends, each.
RecoveryTimes recovery_after(TimePoint fault, std::span<const WorkerSteps> workers);

}  // namespace syncopate::experiments

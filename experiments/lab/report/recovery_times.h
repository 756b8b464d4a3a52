// The time after a fault until training went on, from the workers' step records. Pure.
#pragma once

#include <span>

#include "common/clock.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

// `workers` in the order of their steps' ends, each.
RecoveryTimes recovery_after(TimePoint fault, std::span<const WorkerSteps> workers);

}  // namespace syncopate::experiments

// Computes, from the workers' step records, the time from a fault until training went on. Pure.
#pragma once

#include <span>

#include "common/clock.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

// The steps of each of `workers` must be in the order of their ends.
RecoveryTimes recovery_after(TimePoint fault, std::span<const WorkerSteps> workers);

}  // namespace syncopate::experiments

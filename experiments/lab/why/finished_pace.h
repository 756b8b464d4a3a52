// Makes a RunPace of a run's configuration and summary. Pure.
#pragma once

#include <cstddef>

#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/summary_reading.h"
#include "experiments/lab/why/run_pace.h"

namespace syncopate::experiments {

// `repeat` is one of summary.reports.
RunPace pace_of(const ResolvedRun& config, const RunSummary& summary, std::size_t repeat);

}  // namespace syncopate::experiments

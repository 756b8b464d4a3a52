// The processes of a comparison's row, for what they send and what they cost.
#pragma once

#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

inline void set_processes(const ResolvedRun& config, ComparedRow& row) {
  row.workers = config.workers;
  row.servers = is_ps(config) ? config.servers : 0;
}

}  // namespace syncopate::experiments

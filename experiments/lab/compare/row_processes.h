// The processes of a comparison's row and what each trains at once, for what they send, do and cost.
#pragma once

#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Returns 0 for a program of the person's own, which alone knows it.
inline double rate_of(const ResolvedRun& config) { return runs_command(config) ? 0 : config.learning_rate; }

inline void set_processes(const ResolvedRun& config, ComparedRow& row) {
  row.workers = config.workers;
  row.batch_size = runs_command(config) ? 0 : config.batch_size;
  row.servers = separate_servers_of(config);
}

}  // namespace syncopate::experiments

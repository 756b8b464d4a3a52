// The processes of a comparison's row, for what they send and what they cost.
#pragma once

#include "experiments/cluster/process/data_of.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/comparison_report.h"
#include "experiments/lab/report/sharding_report.h"

namespace syncopate::experiments {

inline void set_processes(const ResolvedRun& config, ComparedRow& row) {
  row.workers = config.workers;
  if (config.mode != Mode::kPs) return;
  row.servers = config.servers;
  if (const Result<ParamLayout> layout = layout_of(config); layout.ok()) {
    row.server_skew = report_sharding(config, *layout).loads.skew;
  }
}

}  // namespace syncopate::experiments

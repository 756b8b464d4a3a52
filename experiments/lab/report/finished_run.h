// FinishedRun: what a run has left in its folder, read back.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/summary_reading.h"

namespace syncopate::experiments {

struct FinishedRun {
  std::string folder;
  ResolvedRun config;
  RunSummary summary;
  std::vector<std::vector<EvalRecord>> evals;  // by repeat
  Environment environment;
};

// Reads config.toml, summary.json, evals.csv and environment.json. Fails, naming the file, if one is missing,
// incomplete or malformed; and with invalid argument if there is no such folder.
Result<FinishedRun> read_finished_run(const std::string& folder);

}  // namespace syncopate::experiments

// ReportedRun: all that the page of a run is made from, as its folder has it.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/why/explained_run.h"

namespace syncopate::experiments {

struct ReportedRun {
  RecordedRun recorded;
  ExplainedRun explained;
  std::vector<EvalRecord> evals;  // of the repeat that is explained
  Environment environment;

  const RunReport& report() const { return recorded.summary.reports[recorded.repeat]; }
  bool simulated() const { return recorded.config.cluster == ClusterKind::kSimulated; }
  // The label of an axis of times, or of rates: says where they are virtual.
  std::string time_label(const std::string& label) const { return (simulated() ? "simulated " : "") + label; }
};

// Reads config.toml, summary.json, steps.csv, evals.csv and environment.json. The files are not trusted. Fails as
// explain_run() does.
Result<ReportedRun> read_reported_run(const std::string& folder);

}  // namespace syncopate::experiments

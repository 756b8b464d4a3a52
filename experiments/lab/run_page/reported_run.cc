#include "experiments/lab/run_page/reported_run.h"

#include "experiments/lab/report/finished_run.h"

namespace syncopate::experiments {

Result<ReportedRun> read_reported_run(const std::string& folder) {
  SYNCOPATE_ASSIGN_OR_RETURN(RecordedRun recorded, read_recorded_run(folder));
  SYNCOPATE_ASSIGN_OR_RETURN(ExplainedRun explained, explain(recorded));
  SYNCOPATE_ASSIGN_OR_RETURN(const FinishedRun finished, read_finished_run(folder));
  ReportedRun run{.recorded = std::move(recorded),
                  .explained = std::move(explained),
                  .evals = {},
                  .environment = finished.environment};
  if (run.recorded.repeat < finished.evals.size()) run.evals = finished.evals[run.recorded.repeat];
  return run;
}

}  // namespace syncopate::experiments

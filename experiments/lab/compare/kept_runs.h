// KeptRuns: the runs of a comparison that its folder has already, because the comparison was interrupted, or asked for
// fewer of them before. A run counts if it was completed with the very settings that are asked for now; what one that
// was cut off has left is removed. Each run's folder says what it is, so there is no other record of progress.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "common/status.h"
#include "experiments/lab/report/results_folder.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// The name below its folder, with a slash, of the file that tells the folder of a comparison from others.
inline constexpr const char* kComparisonMark = "/.comparison";

class KeptRuns {
 public:
  // Takes `folder` for this process alone, and creates it if need be. Fails with invalid argument if another process
  // has it, or if it holds files of something else than a comparison; with resource exhausted if it cannot be created.
  static Result<KeptRuns> open(const std::string& folder);

  // Returns what the run that would leave its results in `config.output` has come to, as far as its files tell; none if
  // it has not been completed, in which case that folder is free now, and what comes into it from then on is left
  // alone. Fails with invalid argument if a run with other settings was completed there, naming the first that differs.
  Result<std::optional<JobResult>> find(const ResolvedRun& config);

 private:
  explicit KeptRuns(ResultsFolder folder) : folder_(std::move(folder)) {}

  ResultsFolder folder_;
  std::set<std::string> free_;  // folders that have been found to be free
};

// Returns the result of a completed run by its files. Fails as read_finished_run() does.
Result<JobResult> result_by_files(const std::string& folder);

}  // namespace syncopate::experiments

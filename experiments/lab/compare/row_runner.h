// RowRunner: runs the jobs of a comparison one after the other. Before each job it prints one line that says which one
// it is and when all will be done, and after it one line with the result, on a terminal and in a file alike.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/compare/time_left.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

class RowRunner {
 public:
  // `runs_ahead` has, for each row, how often it will run. The other arguments are kept by reference.
  RowRunner(std::vector<std::size_t> runs_ahead, const JobRunner& run_job, const Clock& clock, Console& console)
      : run_job_(run_job), clock_(clock), console_(console), left_(std::move(runs_ahead)) {}

  // Runs `config` once. `what` names the run of the comparison: "round 2/5, run 3/8: ps:async".
  JobResult run(std::size_t row, const std::string& what, ResolvedRun config);
  // Says that the row will not run any more.
  void leave_out(std::size_t row) { left_.leave_out(row); }

 private:
  const JobRunner& run_job_;
  const Clock& clock_;
  Console& console_;
  TimeLeft left_;
};

}  // namespace syncopate::experiments

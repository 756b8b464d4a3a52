// compare: one job in several modes, side by side.
//
// First it proves that the comparison is fair: local, allreduce and ps sync must follow the same curve (DESIGN: one
// seed, one data order, one update rule). Then every mode runs --repeat times, in turns, so that a slow spell of the
// machine falls on all of them.
#pragma once

#include <functional>
#include <vector>

#include "experiments/config/comparison.h"
#include "experiments/exit_code.h"
#include "experiments/run/run_job.h"

namespace syncopate::experiments {

// Runs one job without showing its progress, as run_job does.
using JobRunner = std::function<JobResult(const RunConfig& config)>;

// What to compare: what the runs share, and the runs, all validated.
struct ComparisonJob {
  RunConfig base;
  std::vector<ComparedRun> runs;
  std::string option = {};                 // that is varied; empty for none
  std::vector<std::string> left_out = {};  // what cannot run, and is only told
};

// Leaves a folder for each run and comparison.csv and comparison.html beside them. The first job that does not succeed
// ends it with that job's exit code.
ExitCode compare(const ComparisonJob& job, const JobRunner& runner);

// How far two sets of weights lie apart, relative to the length of the first: |first - second| / |first|, Euclidean.
// Infinite where they differ in size or are not numbers.
double relative_distance(const std::vector<float>& first, const std::vector<float>& second);

}  // namespace syncopate::experiments

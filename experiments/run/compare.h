// compare: one job in several modes, side by side.
//
// First it proves that the comparison is fair (equality.h). Then every mode runs --repeat times, in turns, so that a
// slow spell of the machine falls on all of them.
#pragma once

#include <vector>

#include "experiments/config/comparison.h"
#include "experiments/exit_code.h"
#include "experiments/run/equality.h"

namespace syncopate::experiments {

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

}  // namespace syncopate::experiments

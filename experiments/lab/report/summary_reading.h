// What a finished run has left, read back: summary.json, evals.csv and environment.json (results/README.md is their
// schema). Pure: texts in, figures out. The files may be anybody's: what is not as it should be is an error that says
// what, and names no path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

struct RunSummary {
  std::string outcome;               // "completed", or what ended it before its time
  std::int64_t parameters = 0;       // of the model
  std::int64_t steps_per_epoch = 0;  // of one worker; 0: not said
  std::vector<RunReport> reports;    // by repeat; without staleness bins and what each straggler did
  std::vector<std::uint64_t> seeds;  // likewise; empty: not said
};

// Of summary.json. Data loss where it is not whole, or has not what a summary has.
Result<RunSummary> read_summary(std::string_view json);

// Of evals.csv: the evaluations of each repeat, for at least `repeats` of them. Data loss where a line is not one.
Result<std::vector<std::vector<EvalRecord>>> read_evals(std::string_view csv, std::size_t repeats);

// Of environment.json: what it says of the host and the program. Data loss where it is not whole.
Result<Environment> read_environment(std::string_view json);

}  // namespace syncopate::experiments

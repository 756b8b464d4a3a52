// evals.csv: the evaluations of a run, written and read by one description. results/README.md explains its columns.
// Pure: texts in, figures out. The file is not trusted: a malformed one is an error that names no path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

std::string evals_csv_header();
// `repeat` counts from 0.
std::string evals_csv_row(int repeat, const EvalRecord& eval);

// Reads the evaluations of each repeat, for at least `repeats` of them. Unknown columns are ignored. Fails with data
// loss if a line is malformed.
Result<std::vector<std::vector<EvalRecord>>> read_evals(std::string_view csv, std::size_t repeats);

}  // namespace syncopate::experiments

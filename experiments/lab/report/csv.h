// The rows of steps.csv and evals.csv (results/README.md explains every column). Pure.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/step_record.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

// Return the first line of each file.
std::string steps_csv_header();
std::string evals_csv_header();

// Return one row. `repeat` counts from 0; end_s counts from `origin`, when this repeat's training began.
std::string steps_csv_row(int repeat, int worker, TimePoint origin, const StepRecord& step);
std::string evals_csv_row(int repeat, const EvalRecord& eval);

}  // namespace syncopate::experiments

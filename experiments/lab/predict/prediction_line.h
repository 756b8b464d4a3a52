// The commands that start nothing: `run_experiment reproduce NAME`, `predict [OPTIONS]`, `advise [OPTIONS]`, and `study
// FOLDER... --to=workers=LIST`, which is predict --measured. Pure, but for the files that --profile and --measured
// name, runs of advise and predict --simulate, and files that --output asks for.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// Whether these words, of which the first is the command, are a study's that carries its sizes on.
bool asks_for_other_sizes(const std::vector<std::string>& words);

// Returns what the command prints, after the runs that advise and predict --simulate need, which `run` carries out.
// `words` are those behind the program's name, the first is the command. Fails with one line that says what is wrong
// and what would be right: with resource exhausted if files cannot be written; every other failure is one of usage.
Result<std::string> prediction_text(const std::vector<std::string>& words, const JobRunner& run = {});

}  // namespace syncopate::experiments

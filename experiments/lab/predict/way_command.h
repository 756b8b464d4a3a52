// A way to run a job as a command that a person can run: the simulated cluster and this project's own strategies. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/run_request.h"
#include "experiments/lab/predict/scaled_job.h"
#include "prediction/advice/candidate.h"

namespace syncopate::experiments {

// What a run has beside its way's plan.
struct Addition {
  std::string name;                // "int8"; empty for none
  std::vector<std::string> words;  // its options
  int period = 1;                  // steps from one exchange to the next
};

// Returns the options of a run of a few steps: {"--cluster=simulated", "--mode=allreduce", ...}. A model that can be
// trained here has as few samples as that takes.
std::vector<std::string> words_of(const ScaledJob& job, int workers, const prediction::Way& way,
                                  const Addition& addition = {});

// Returns the run that these words ask for. Fails as a command line of them does.
Result<RunRequest> run_of(const std::vector<std::string>& words);

// Returns the command of these words, as a shell takes it.
std::string command_of(const std::vector<std::string>& words);

}  // namespace syncopate::experiments

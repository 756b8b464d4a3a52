// The options of `run_experiment predict`. Pure, but for the files that --profile and --measured name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/predict/measured_runs.h"
#include "experiments/lab/predict/scaled_job.h"
#include "simulation/network.h"

namespace syncopate::experiments {

struct PredictRequest {
  ScaledJob job;
  std::string output;  // a folder for the results; empty: none
  int servers = 1;
  prediction::Sharding sharding = prediction::Sharding::kEven;
  double bucket_bytes = 0;
  std::optional<simulation::NetworkModel> simulate;  // none: closed forms alone
  std::optional<MeasuredRuns> measured;              // none: closed forms of nominal figures
};

// Reads words like --profile=resnet50. --profile and --workers must be there, --batch-size and --step-time
// unless the profile has times or --compute is a known device, and --shape or a --cluster that has a link, each but
// --workers unless the files of --measured say it; none may stand twice. Fails with invalid argument and one line that
// says what is wrong and what would be right.
Result<PredictRequest> parse_predict_request(const std::vector<std::string>& words);

}  // namespace syncopate::experiments

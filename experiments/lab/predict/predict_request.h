// The options of `run_experiment predict`. Pure, but for the file that --profile may name.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "prediction/step_prediction.h"

namespace syncopate::experiments {

struct PredictRequest {
  prediction::ModelProfile profile;
  std::vector<int> workers;  // the sizes to predict for, at least one
  int workers_per_host = 1;
  int batch_size = 0;           // samples a worker
  double step_seconds = 0;      // of one worker alone
  double bytes_per_second = 0;  // of a host's link, each way
  double alpha = 0;             // seconds for each message
  int servers = 1;
  prediction::Sharding sharding = prediction::Sharding::kEven;
  double bucket_bytes = 0;
};

// Reads words like --profile=resnet50. --profile, --workers, --batch-size, --step-time and --network must be there, and
// none may stand twice. Fails with invalid argument and one line that says what is wrong and what would be right.
Result<PredictRequest> parse_predict_request(const std::vector<std::string>& words);

}  // namespace syncopate::experiments

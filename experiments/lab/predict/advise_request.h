// The options of `run_experiment advise`. Pure, but for the file that --profile may name, and data of a person's own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/predict/scaled_job.h"
#include "prediction/advice/candidate.h"

namespace syncopate::experiments {

struct AdviseRequest {
  ScaledJob job;
  std::string output;        // a folder for the results; empty: none
  std::vector<int> servers;  // empty: powers of two up to the workers
  std::vector<prediction::Sharding> shardings;
  std::vector<double> bucket_bytes;
  std::optional<double> memory_bytes;       // of a host with workers
  std::string memory;                       // the same as it was given
  std::string optimizer;                    // by its name
  int state_floats = 0;                     // that it keeps of each parameter
  bool shards_state = true;                 // whether it can be divided among workers
  std::int64_t search_events = 50'000'000;  // after which no further run of one size begins
  prediction::Goal goal = prediction::Goal::kFastest;

  prediction::AdvisedJob advised_job() const;
  prediction::SearchSpace space(int workers) const;
};

// Reads words as parse_predict_request() does, and fails as it does; besides, for --goal=cheapest without prices.
Result<AdviseRequest> parse_advise_request(const std::vector<std::string>& words);

}  // namespace syncopate::experiments

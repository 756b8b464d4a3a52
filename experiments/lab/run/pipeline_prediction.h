// The closed form of a step of a pipeline, from the configuration of a run and what is known of its layers. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"
#include "prediction/model_profile.h"
#include "prediction/step_prediction.h"

namespace syncopate::experiments {

struct PipelinePrediction {
  double step = 0;   // seconds
  double least = 0;  // seconds, that no step can be below: the schedule without messages, and a ring's bytes.
                     // A clock of whole nanoseconds may make each pass of a tensor one shorter.
  // By stage, bytes as float32: of the weights that it updates, and of those that it reads and another stage updates.
  std::vector<double> own_bytes, borrowed_bytes;
};

// Returns the step of a pipeline whose worker alone, with all layers, needs `compute` seconds for a batch of its own.
// It is that of the schedule (pipeline_time.h), with the messages between stages; what the replicas of a stage exchange
// by `plan` over `network`, of which they are the workers, goes on beside the last microbatch's backward, and delays
// the stage's next step by what is left. `profile` has the model's tensors, and divides `compute` among them. None
// where hosts have several workers, or the layers cannot be cut so. Requires is_pipelined(config).
std::optional<PipelinePrediction> predict_pipeline(const ResolvedRun& config, const prediction::ModelProfile& profile,
                                                   double compute, const prediction::Network& network,
                                                   const prediction::ExchangePlan& plan);

// Returns text for people, before the run: a line for each stage, with its layers, what it holds of the weights, and
// its part of the computing. Empty if the layers cannot be cut so. Requires is_pipelined(config).
std::string stages_text(const ResolvedRun& config, const prediction::ModelProfile& profile);

// Returns for how many seconds a link carries the activations of a microbatch to the next chunk of the chain, by chunk;
// empty if the layers cannot be cut so. Requires is_pipelined(config).
std::vector<double> seconds_to_next(const ResolvedRun& config, const prediction::ModelProfile& profile,
                                    double bytes_per_second);

}  // namespace syncopate::experiments

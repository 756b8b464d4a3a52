// The closed form of a step of workers that have a part each of the layers, from the configuration of a run. Pure.
#pragma once

#include <optional>

#include "experiments/config/resolved_run.h"
#include "prediction/model_profile.h"
#include "prediction/step_prediction.h"

namespace syncopate::experiments {

struct PartsPrediction {
  double step = 0;       // seconds
  double least = 0;      // seconds, that no step can be below: computing, and the bytes of sums, which nothing hides
  double own_bytes = 0;  // of a worker's weights, as float32
};

// Returns the step of workers of which one alone, with whole layers, needs `compute` seconds for a batch of its own. A
// worker computes its share of each tensor for the batches of all that have the other parts, and waits for the sums of
// activations, one after another (Shoeybi et al. 2019, "Megatron-LM", section 3), each by `plan`. What the workers of a
// part exchange by it over `network`, of which they are the workers, goes on beside backward. `profile` has the tensors
// of the whole model, and divides `compute` among them. None where hosts have several workers, or the layers cannot be
// divided so. Requires splits_layers(config), and no stages.
std::optional<PartsPrediction> predict_parts(const ResolvedRun& config, const prediction::ModelProfile& profile,
                                             double compute, const prediction::Network& network,
                                             const prediction::ExchangePlan& plan);

}  // namespace syncopate::experiments

// Phantom: a model that is known by its profile, made so small that a thousand workers fit in memory: one of its
// elements stands for `scale` of the model's. Its wire makes up for that (SimulatedWire), so that times are those of
// the whole model. It computes nothing, and its gradients are zeros.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/param_layout.h"
#include "experiments/cluster/measurement/compute_times.h"
#include "experiments/config/resolved_run.h"
#include "prediction/model_profile.h"
#include "worker/model.h"
#include "worker/pipeline/stage_model.h"

namespace syncopate::experiments {

struct Phantom {
  std::string name;  // of the model
  std::int64_t scale = 1;
  ParamLayout layout;
};

// Returns how far the model can be scaled down: the power of two up to 64 with which the pieces that the run cuts
// messages into, which are whole alignment units, come to at most 1 % more or fewer bytes than the model's (where
// shards have whole tensors, those that become one with their neighbours change places), and buckets to as many.
std::int64_t scale_for(const prediction::ModelProfile& profile, const ResolvedRun& config);

// Tensors that are too small at this scale are one with their neighbours, so that the sum of all bytes stays what it
// is.
Phantom make_phantom(const prediction::ModelProfile& profile, std::int64_t scale);

// Returns the times of that phantom's tensors, which take `step` together (prediction/timed_model.h says how they share
// it).
ComputeTimes phantom_times(const prediction::ModelProfile& profile, Duration step, std::int64_t scale);

// Returns the run as processes see it whose payloads are scaled down: all sizes in bytes are.
ResolvedRun scaled_down(ResolvedRun config, std::int64_t scale);

std::unique_ptr<worker::Model> make_phantom_model(const Phantom& phantom, int batch_size);
// Returns the part of it that has these tensors, as a stage of a pipeline. A profile knows no activations: what goes
// from stage to stage is empty.
std::unique_ptr<worker::StageModel> make_phantom_stage(const Phantom& phantom, Range own, int microbatch);

}  // namespace syncopate::experiments

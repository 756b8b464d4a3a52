// How much of a job a checkpoint has, where workers share its batches. Pure.
#pragma once

#include <cstdint>

#include "experiments/checkpoint/manifest.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// Batches that the weights of the checkpoint have learnt from, by what its shards have counted: gradients that every
// chunk has had. So none is counted that was on its way; which ones they were is not known, and a run that goes on
// takes the first of the job's order for them. Where no shard has counted, its steps of all workers.
std::int64_t batches_done(const Manifest& manifest, const RunConfig& config);

}  // namespace syncopate::experiments

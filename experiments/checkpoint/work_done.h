// How much of a job a checkpoint includes, if workers share its batches. Pure.
#pragma once

#include <cstdint>

#include "experiments/checkpoint/manifest.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Returns the number of batches that the checkpoint's weights have learnt from, as its shards have counted them:
// gradients that every chunk has received. A gradient that was still being sent is not counted. It is not known which
// batches these were; a run that resumes assumes the first ones in the job's order. If no shard has counted, returns
// the steps of all workers.
std::int64_t batches_done(const Manifest& manifest, const ResolvedRun& config);

}  // namespace syncopate::experiments

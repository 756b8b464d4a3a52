// Measures what this machine takes for what workers and servers do besides sending, when nothing else runs: medians of
// many repeats, after some that do not count. Takes up to a second each.
#pragma once

#include "common/codec/codec_config.h"
#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "experiments/cluster/measurement/compute_times.h"
#include "experiments/config/resolved_run.h"
#include "prediction/model_profile.h"

namespace syncopate::experiments {

// The passes of the run's model over its data, on one thread. Backward is measured tensor by tensor; forward as a
// whole, of which each tensor is taken to have as large a part as of backward.
Result<ComputeTimes> measure_computing(const ResolvedRun& config);

// The same as a profile, whose source says which machine this is. Its FLOPs are counted for the model as a whole. Fails
// with invalid argument for models with row-sparse tables, of which a step touches other rows each time.
Result<prediction::ModelProfile> measure_profile(const ResolvedRun& config);

// Seconds a byte, with `elements` floats at once, above 0.
double measure_sum(std::size_t elements);
double measure_update(const OptimizerConfig& optimizer, std::size_t elements);
struct CodecTimes {
  double encode = 0;
  double decode = 0;
};
// Not for PowerSGD, whose products depend on shapes.
CodecTimes measure_codec(const CodecConfig& codec, std::size_t elements);

// Returns with how many elements these are to be measured for weights of this layout: as many as it has, up to as many
// as are far from any cache.
std::size_t elements_to_measure(const ParamLayout& layout);

}  // namespace syncopate::experiments

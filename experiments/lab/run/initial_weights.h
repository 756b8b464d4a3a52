// The initial weights of a job, as its model makes them from the seed, without a run.
#pragma once

#include <vector>

#include "common/param_layout.h"
#include "common/status.h"
#include "experiments/cluster/control/weights_snapshot.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Weights outside of a run. All tensors are dense, laid out as snapshot_layout says.
struct ModelWeights {
  ParamLayout layout;
  std::vector<float> values;
};

// Returns the initial weights, and of row-sparse tables the rows `rows` (none for a model without tables). Builds the
// model for a batch of one, and opens only the description of the data. Fails as make_model does.
Result<ModelWeights> initial_weights(const RunSettings& config, const TableKeys& rows);

}  // namespace syncopate::experiments

// The data set, the layout of the weights and the backend that a configuration asks for.
#pragma once

#include <memory>

#include "common/param_layout.h"
#include "experiments/config/run_config.h"
#include "worker/backend/compute_backend.h"
#include "worker/data/open_dataset.h"

namespace syncopate::experiments {

Result<worker::DatasetPair> open_data_of(const RunConfig& config);
// Of the model for that data set, with room for the rows of a batch: opens no data and builds no model, and is there
// before anything runs.
Result<ParamLayout> layout_of(const RunConfig& config);
// The same of what its training keeps beside the weights: empty for most models.
Result<ParamLayout> local_state_layout_of(const RunConfig& config);
std::unique_ptr<worker::ComputeBackend> backend_of(const RunConfig& config);

}  // namespace syncopate::experiments

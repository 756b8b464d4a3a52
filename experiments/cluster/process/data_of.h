// Makes the data set, the layout of the weights and the backend that a configuration asks for.
#pragma once

#include <memory>

#include "common/param_layout.h"
#include "experiments/config/resolved_run.h"
#include "worker/backend/compute_backend.h"
#include "worker/data/open_dataset.h"

namespace syncopate::experiments {

Result<worker::DatasetPair> open_data_of(const RunSettings& config);
// Returns the form of its samples; of data of the person's own it reads all, else no data.
Result<worker::SampleForm> form_of_data(const RunSettings& config);
// Returns the layout of the model for that data set, with space for the rows of a batch. It opens no data and builds no
// model, so that it can be called before anything runs.
Result<ParamLayout> layout_of(const ResolvedRun& config);
// Returns the layout of what the model's training keeps besides the weights: empty for most models.
Result<ParamLayout> local_state_layout_of(const RunSettings& config);
std::unique_ptr<worker::ComputeBackend> backend_of(const RunSettings& config);

}  // namespace syncopate::experiments

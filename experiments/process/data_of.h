// The data set and the backend that a configuration asks for.
#pragma once

#include <memory>

#include "experiments/config/run_config.h"
#include "worker/backend/compute_backend.h"
#include "worker/data/open_dataset.h"

namespace syncopate::experiments {

Result<worker::DatasetPair> open_data_of(const RunConfig& config);
std::unique_ptr<worker::ComputeBackend> backend_of(const RunConfig& config);

}  // namespace syncopate::experiments

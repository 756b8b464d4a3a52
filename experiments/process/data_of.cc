#include "experiments/process/data_of.h"

#include <fmt/format.h>

namespace syncopate::experiments {

Result<worker::DatasetPair> open_data_of(const RunConfig& config) {
  const std::string name = config.dataset == "digits"
                               ? fmt::format("digits:{}-{}", config.train_samples, config.test_samples)
                               : config.dataset;
  return worker::open_dataset(name, config.data_dir, config.seed);
}

std::unique_ptr<worker::ComputeBackend> backend_of(const RunConfig& config) {
  return config.backend == BackendKind::kReference ? worker::make_reference_backend() : worker::make_onednn_backend();
}

}  // namespace syncopate::experiments

#include "experiments/cluster/process/data_of.h"

#include "worker/model.h"

namespace syncopate::experiments {

Result<worker::DatasetPair> open_data_of(const RunSettings& config) {
  return worker::open_dataset(dataset_spec(config), config.data_dir, config.data_seed);
}

Result<ParamLayout> layout_of(const ResolvedRun& config) {
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, worker::sample_form(dataset_spec(config), config.data_dir));
  return worker::model_layout(model_spec(config), form, config.batch_size);
}

Result<ParamLayout> local_state_layout_of(const RunSettings& config) {
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, worker::sample_form(dataset_spec(config), config.data_dir));
  return worker::local_state_layout(model_spec(config), form);
}

std::unique_ptr<worker::ComputeBackend> backend_of(const RunSettings& config) {
  return config.backend == BackendKind::kReference ? worker::make_reference_backend() : worker::make_onednn_backend();
}

}  // namespace syncopate::experiments

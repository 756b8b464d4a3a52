#include "experiments/cluster/process/data_of.h"

#include <utility>

#include "experiments/config/profile_choice.h"
#include "worker/data/blank_samples.h"
#include "worker/data/held_out.h"
#include "worker/model.h"

namespace syncopate::experiments {

Result<worker::DatasetPair> open_data_of(const RunSettings& config) {
  if (is_profile(config)) {
    return worker::DatasetPair{.train = std::make_unique<worker::BlankSamples>(config.train_samples),
                               .test = std::make_unique<worker::BlankSamples>(1)};
  }
  SYNCOPATE_ASSIGN_OR_RETURN(worker::DatasetPair data, worker::open_dataset(dataset_spec(config), config.data_dir,
                                                                            config.data_seed, own_options_of(config)));
  return worker::hold_out(std::move(data), config.validation.value_or(0));
}

Result<worker::SampleForm> form_of_data(const RunSettings& config) {
  return worker::sample_form(dataset_spec(config), config.data_dir, own_options_of(config));
}

Result<ParamLayout> layout_of(const ResolvedRun& config) {
  if (config.script != nullptr) return config.script->layout;
  if (is_profile(config)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, profile_of(config));
    ParamLayout layout;
    for (const prediction::TensorProfile& tensor : profile.tensors) layout.add(tensor.name, tensor.shape);
    return layout;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  return worker::model_layout(model_spec(config), form, config.batch_size);
}

Result<ParamLayout> local_state_layout_of(const RunSettings& config) {
  if (is_profile(config)) return ParamLayout();
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  return worker::local_state_layout(model_spec(config), form);
}

std::unique_ptr<worker::ComputeBackend> backend_of(const RunSettings& config) {
  return config.backend == BackendKind::kReference ? worker::make_reference_backend() : worker::make_onednn_backend();
}

}  // namespace syncopate::experiments

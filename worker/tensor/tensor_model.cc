#include "worker/tensor/tensor_model.h"

#include <utility>

#include "worker/model_layers.h"
#include "worker/sequential.h"

namespace syncopate::worker {

Result<SplitModel> make_split_model(const std::string& spec, const SampleForm& form, const LayerPart& part,
                                    int batch_size, ComputeBackend& backend) {
  auto sums = std::make_unique<TensorSums>();
  ModelDraft draft{
      .backend = backend, .batch_size = batch_size, .labels = form.labels, .part = part, .sums = sums.get()};
  SYNCOPATE_ASSIGN_OR_RETURN(Layers layers, model_layers(spec, form, draft));
  SplitModel split{.layout = SplitLayout(draft), .sums = std::move(sums), .model = nullptr};
  split.model = std::make_unique<Sequential>(spec, std::move(draft), std::move(layers));
  SYNCOPATE_RETURN_IF_ERROR(backend.status().in("--model=" + spec));
  return split;
}

}  // namespace syncopate::worker

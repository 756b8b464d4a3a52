#include "worker/sequential.h"

#include <cassert>
#include <utility>
#include <vector>

namespace syncopate::worker {

Sequential::Sequential(std::string name, ModelDraft draft, Layers layers)
    : name_(std::move(name)),
      batch_size_(draft.batch_size),
      labels_(draft.labels),
      backend_(draft.backend),
      layout_(std::move(draft.layout)),
      local_layout_(std::move(draft.local_layout)),
      scratch_(backend_),
      chain_(backend_, std::move(layers), batch_size_, scratch_, draft.pass),
      logits_(backend_.allocate_tensor(chain_.output_values() * batch_size_)),
      logits_gradient_(backend_.allocate_tensor(chain_.output_values() * batch_size_)) {
  if (local_layout_.size() == 0) return;
  local_state_ = backend_.allocate_floats(local_layout_.size());
  if (local_state_.empty()) return;  // the backend keeps why
  std::vector<float> initial(local_state_.size());
  chain_.initialize_local_state(initial);
  backend_.upload(initial, local_state_);
  chain_.use_local_state(local_state_);
}

void ChainHead::apply(ComputeBackend& backend, const BatchView& batch, In outputs, Out gradient) const {
  if (!batch.targets.empty()) {
    backend.squared_error(outputs, batch.targets, batch.labels, batch.weight, gradient);
    return;
  }
  const auto classes = static_cast<int>(values) / labels;
  backend.softmax_cross_entropy(samples * labels, classes, outputs, batch.labels, batch.weight, gradient);
}

In Sequential::values_of(const BatchView& batch) {
  if (backend_.element_type() == ElementType::kFloat32 || batch.values.empty()) return batch.values;
  if (converted_.empty()) converted_ = backend_.allocate_tensor(batch.values.size());
  backend_.convert(batch.values, converted_);
  return converted_;
}

void Sequential::forward(In weights, const BatchView& batch) {
  assert(batch.labels.size() == static_cast<std::size_t>(batch_size_ * labels_));
  images_ = values_of(batch);
  ids_ = batch.ids;
  chain_.forward(weights, {images_, logits_, ids_});
  const ChainHead head{.samples = batch_size_, .labels = labels_, .values = chain_.output_values()};
  head.apply(backend_, batch, logits_, logits_gradient_);
}

void Sequential::backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) {
  // Nobody learns from the images' gradient.
  chain_.backward(weights, {images_, logits_, ids_}, {logits_gradient_, {}}, gradients, tensor_ready);
}

}  // namespace syncopate::worker

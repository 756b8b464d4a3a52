#include "worker/sequential.h"

#include <cassert>
#include <utility>

namespace syncopate::worker {

Sequential::Sequential(std::string name, LayerChain chain, int batch_size, ComputeBackend& backend)
    : name_(std::move(name)),
      batch_size_(batch_size),
      backend_(backend),
      layout_(std::move(chain.layout)),
      scratch_(backend),
      chain_(backend, std::move(chain.layers), batch_size, scratch_),
      logits_(backend.allocate_floats(chain_.output_values() * batch_size)),
      logits_gradient_(backend.allocate_floats(chain_.output_values() * batch_size)) {}

void Sequential::forward(std::span<const float> weights, const BatchView& batch) {
  assert(batch.labels.size() == static_cast<std::size_t>(batch_size_));
  images_ = batch.values;
  chain_.forward(weights, {images_, logits_});
  const auto classes = static_cast<int>(chain_.output_values());
  backend_.softmax_cross_entropy(batch_size_, classes, logits_, batch.labels, logits_gradient_);
}

void Sequential::backward(std::span<const float> weights, std::span<float> gradients,
                          const std::function<void(std::size_t)>& tensor_ready) {
  // Nobody learns from the images' gradient.
  chain_.backward(weights, {images_, logits_}, {logits_gradient_, {}}, gradients, tensor_ready);
}

}  // namespace syncopate::worker

#include "worker/sequential.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace syncopate::worker {

Sequential::Sequential(std::string name, LayerChain chain, int batch_size, ComputeBackend& backend)
    : name_(std::move(name)), chain_(std::move(chain)), batch_size_(batch_size), backend_(backend) {
  assert(!chain_.layers.front()->in_place());
  allocate_activations();
}

void Sequential::allocate_activations() {
  const auto values = [&](const std::unique_ptr<Layer>& layer) { return layer->output_values() * batch_size_; };
  std::size_t largest = 0;
  for (const auto& layer : chain_.layers) largest = std::max(largest, values(layer));
  // A layer's backward reads the gradient of its output and writes that of its input: two buffers in turn will do.
  Out here = backend_.allocate_floats(largest);
  Out there = backend_.allocate_floats(largest);
  for (const auto& layer : chain_.layers) {
    if (layer->in_place()) {
      outputs_.push_back(outputs_.back());
    } else {
      outputs_.push_back(backend_.allocate_floats(values(layer)));
      std::swap(here, there);
    }
    gradients_.push_back(here.empty() ? here : here.first(values(layer)));
  }
}

double Sequential::flops_per_sample() const {
  double sum = 0;
  for (const auto& layer : chain_.layers) sum += layer->flops_per_sample();
  return sum;
}

void Sequential::initialize(std::uint64_t seed, std::span<float> weights) const {
  for (const auto& layer : chain_.layers) layer->initialize(seed, weights);
}

Activations Sequential::activations_of(std::size_t layer) const {
  return {layer == 0 ? images_ : In(outputs_[layer - 1]), outputs_[layer]};
}

void Sequential::forward(std::span<const float> weights, const BatchView& batch) {
  assert(batch.labels.size() == static_cast<std::size_t>(batch_size_));
  images_ = batch.values;
  for (std::size_t i = 0; i < chain_.layers.size(); ++i) {
    Layer& layer = *chain_.layers[i];
    if (before_reading_ && layer.params().size() > 0) before_reading_(layer.params());
    layer.forward(weights, activations_of(i));
  }
  const auto classes = static_cast<int>(chain_.layers.back()->output_values());
  backend_.softmax_cross_entropy(batch_size_, classes, outputs_.back(), batch.labels, gradients_.back());
}

void Sequential::backward(std::span<const float> weights, std::span<float> gradients,
                          const std::function<void(std::size_t)>& tensor_ready) {
  for (std::size_t i = chain_.layers.size(); i-- > 0;) {
    const Out input_gradient = i == 0 ? Out() : gradients_[i - 1];  // nobody learns from the images' gradient
    chain_.layers[i]->backward(weights, activations_of(i), {gradients_[i], input_gradient}, gradients, tensor_ready);
  }
}

}  // namespace syncopate::worker

#include "worker/layers/chain.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace syncopate::worker {

Out GradientScratch::buffer(std::size_t number, std::size_t count) {
  if (!shared_) return backend_.allocate_tensor(count);
  Out& memory = buffers_[number];
  if (memory.size() < count) memory = backend_.allocate_tensor(count);
  return memory.size() < count ? Out() : memory.first(count);  // the backend keeps why it had no more
}

Chain::Chain(ComputeBackend& backend, Layers layers, int batch_size, GradientScratch& scratch, Pass pass)
    : layers_(std::move(layers)), last_(layers_.size() - 1) {
  assert(!layers_.front()->in_place());
  while (layers_[last_]->in_place()) --last_;
  std::size_t turn = 0;
  for (std::size_t i = 0; i < last_; ++i) {
    const std::size_t values = layers_[i]->output_values() * static_cast<std::size_t>(batch_size);
    const bool in_place = layers_[i]->in_place();
    if (!in_place) turn = 1 - turn;
    if (pass == Pass::kEvaluation) {
      outputs_.push_back(in_place ? outputs_.back() : scratch.buffer(turn, values));
    } else {
      outputs_.push_back(in_place ? outputs_.back() : backend.allocate_tensor(values));
      gradients_.push_back(in_place ? gradients_.back() : scratch.buffer(turn, values));
    }
  }
}

bool Chain::uses_output_in_backward() const {
  return std::any_of(layers_.begin() + static_cast<std::ptrdiff_t>(last_), layers_.end(),
                     [](const auto& layer) { return layer->uses_output_in_backward(); });
}

bool Chain::take_residual(bool relu) { return last_ + 1 == layers_.size() && layers_[last_]->take_residual(relu); }

double Chain::flops_per_sample() const {
  double sum = 0;
  for (const auto& layer : layers_) sum += layer->flops_per_sample();
  return sum;
}

Range Chain::params() const {
  Range whole;
  for (const auto& layer : layers_) whole = joined(whole, layer->params());
  return whole;
}

void Chain::initialize(std::uint64_t seed, std::span<float> weights) const {
  for (const auto& layer : layers_) layer->initialize(seed, weights);
}

void Chain::initialize_local_state(std::span<float> state) const {
  for (const auto& layer : layers_) layer->initialize_local_state(state);
}

void Chain::use_local_state(Floats state) {
  for (const auto& layer : layers_) layer->use_local_state(state);
}

void Chain::tell_before_reading(std::size_t layer) const {
  const Range params = layers_[layer]->params();
  if (before_reading_ && params.size() > 0) before_reading_(params);
}

Activations Chain::activations_of(std::size_t layer, const Activations& values) const {
  const auto output = [&](std::size_t of) { return of < last_ ? outputs_[of] : values.output; };
  return {layer == 0 ? values.input : In(output(layer - 1)), output(layer), values.ids,
          layer == last_ ? values.residual : In()};
}

Out Chain::gradient_of(std::size_t layer, const ActivationGradients& gradients) const {
  return layer < last_ ? gradients_[layer] : gradients.output;
}

void Chain::forward(In weights, const Activations& values) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    tell_before_reading(i);
    layers_[i]->forward(weights, activations_of(i, values));
  }
}

std::vector<Range> Chain::late_gradients() const {
  std::vector<Range> late;
  for (const auto& layer : layers_) {
    for (const Range& range : layer->late_gradients()) late.push_back(range);
  }
  return late;
}

void Chain::backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                     const TensorReady& ready) {
  backward_by(&Layer::backward, weights, values, gradients, arena_gradients, ready);
}

void Chain::backward_inputs(In weights, const Activations& values, const ActivationGradients& gradients,
                            Out arena_gradients, const TensorReady& ready) {
  backward_by(&Layer::backward_inputs, weights, values, gradients, arena_gradients, ready);
}

void Chain::backward_by(LayerBackward pass, In weights, const Activations& values, const ActivationGradients& gradients,
                        Out arena_gradients, const TensorReady& ready) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    tell_before_reading(i);
    const Out input_gradient = i == 0 ? gradients.input : gradient_of(i - 1, gradients);
    (*layers_[i].*pass)(weights, activations_of(i, values),
                        {gradient_of(i, gradients), input_gradient, i == 0 ? gradients.residual : In()},
                        arena_gradients, ready);
  }
}

void Chain::backward_weights(const Activations& values, Out output_gradient, Out arena_gradients,
                             const TensorReady& ready) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    layers_[i]->backward_weights(activations_of(i, values), gradient_of(i, {.output = output_gradient, .input = {}}),
                                 arena_gradients, ready);
  }
}

}  // namespace syncopate::worker

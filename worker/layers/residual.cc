#include "worker/layers/residual.h"

#include <cassert>
#include <utility>

namespace syncopate::worker {

Residual::Residual(ComputeBackend& backend, std::unique_ptr<Layer> inner, std::unique_ptr<Layer> shortcut,
                   std::size_t input_values, int batch_size, bool relu)
    : backend_(backend),
      inner_(std::move(inner)),
      shortcut_(std::move(shortcut)),
      relu_(relu),
      fused_(inner_->take_residual(relu)) {
  assert(!inner_->in_place() && (fused_ || !inner_->uses_output_in_backward()));
  assert(inner_->output_values() == (shortcut_ ? shortcut_->output_values() : input_values));
  if (!shortcut_) return;
  assert(!shortcut_->in_place() && !shortcut_->uses_output_in_backward());
  output_ = backend.allocate_tensor(shortcut_->output_values() * static_cast<std::size_t>(batch_size));
  input_gradient_ = backend.allocate_tensor(input_values * static_cast<std::size_t>(batch_size));
}

double Residual::flops_per_sample() const {
  return inner_->flops_per_sample() + (shortcut_ ? shortcut_->flops_per_sample() : 0);
}

Range Residual::params() const { return shortcut_ ? joined(inner_->params(), shortcut_->params()) : inner_->params(); }

void Residual::initialize(std::uint64_t seed, std::span<float> weights) const {
  inner_->initialize(seed, weights);
  if (shortcut_) shortcut_->initialize(seed, weights);
}

void Residual::initialize_local_state(std::span<float> state) const {
  inner_->initialize_local_state(state);
  if (shortcut_) shortcut_->initialize_local_state(state);
}

void Residual::use_local_state(Floats state) {
  inner_->use_local_state(state);
  if (shortcut_) shortcut_->use_local_state(state);
}

void Residual::forward(In weights, const Activations& values) {
  const In past = shortcut_ ? In(output_) : values.input;
  if (shortcut_) shortcut_->forward(weights, {values.input, output_, values.ids});
  inner_->forward(weights, {values.input, values.output, values.ids, fused_ ? past : In()});
  if (fused_) return;
  backend_.add(past, values.output);
  if (relu_) backend_.relu_forward(values.output);
}

std::vector<Range> Residual::late_gradients() const {
  std::vector<Range> late = inner_->late_gradients();
  if (shortcut_) {
    for (const Range& range : shortcut_->late_gradients()) late.push_back(range);
  }
  return late;
}

void Residual::backward(In weights, const Activations& values, const ActivationGradients& gradients,
                        Out arena_gradients, const TensorReady& ready) {
  backward_by(&Layer::backward, weights, values, gradients, arena_gradients, ready);
}

void Residual::backward_inputs(In weights, const Activations& values, const ActivationGradients& gradients,
                               Out arena_gradients, const TensorReady& ready) {
  backward_by(&Layer::backward_inputs, weights, values, gradients, arena_gradients, ready);
}

void Residual::backward_by(LayerBackward pass, In weights, const Activations& values,
                           const ActivationGradients& gradients, Out arena_gradients, const TensorReady& ready) {
  const bool wanted = !gradients.input.empty();
  // A shortcut's tensors are reported first, so it cannot wait until the inner chain has done this.
  if (relu_ && (!fused_ || shortcut_)) backend_.relu_backward(values.output, gradients.output);
  if (shortcut_) {
    ((*shortcut_).*pass)(weights, {values.input, output_, values.ids},
                         {gradients.output, wanted ? input_gradient_ : Out()}, arena_gradients, ready);
  }
  const In past = shortcut_ ? In(input_gradient_) : In(gradients.output);
  const bool adds_itself = wanted && inner_->takes_residual_gradient();
  ((*inner_).*pass)(weights, {values.input, values.output, values.ids},
                    {gradients.output, gradients.input, adds_itself ? past : In()}, arena_gradients, ready);
  if (wanted && !adds_itself) backend_.add(past, gradients.input);
}

void Residual::backward_weights(const Activations& values, Out output_gradient, Out arena_gradients,
                                const TensorReady& ready) {
  if (shortcut_) {
    shortcut_->backward_weights({values.input, output_, values.ids}, output_gradient, arena_gradients, ready);
  }
  inner_->backward_weights({values.input, values.output, values.ids}, output_gradient, arena_gradients, ready);
}

}  // namespace syncopate::worker

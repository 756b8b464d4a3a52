// Residual: y = f(x) + s(x), or max(f(x) + s(x), 0), where f is any chain of layers and the shortcut s is the identity
// or a chain of its own (He et al. 2016, "Deep residual learning for image recognition", section 3.2). Where f's last
// layer can, it makes the sum, and the relu, itself.
#pragma once

#include <memory>

#include "worker/layers/layer.h"

namespace syncopate::worker {

class Residual final : public Layer {
 public:
  // The tensors of `inner` must come directly before those of `shortcut` in the layout. `inner` must not use its output
  // in backward, since the sum is computed there, unless it takes the sum over (take_residual); nor must `shortcut`,
  // since both share one gradient. A null `shortcut` is the identity: then `inner` must preserve the number of values,
  // `input_values`. `relu`: the sum ends with max(y, 0).
  Residual(ComputeBackend& backend, std::unique_ptr<Layer> inner, std::unique_ptr<Layer> shortcut,
           std::size_t input_values, int batch_size, bool relu = false);

  std::size_t output_values() const override { return inner_->output_values(); }
  bool uses_output_in_backward() const override { return relu_; }
  double flops_per_sample() const override;
  Range params() const override;
  void initialize(std::uint64_t seed, std::span<float> weights) const override;
  void initialize_local_state(std::span<float> state) const override;
  void use_local_state(Floats state) override;

  void forward(In weights, const Activations& values) override;
  void backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override;
  std::vector<Range> late_gradients() const override;
  void backward_inputs(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                       const TensorReady& ready) override;
  void backward_weights(const Activations& values, Out output_gradient, Out arena_gradients,
                        const TensorReady& ready) override;

 private:
  void backward_by(LayerBackward pass, In weights, const Activations& values, const ActivationGradients& gradients,
                   Out arena_gradients, const TensorReady& ready);

  ComputeBackend& backend_;
  std::unique_ptr<Layer> inner_;
  std::unique_ptr<Layer> shortcut_;  // null: the identity
  bool relu_;
  bool fused_;  // `inner_` makes the sum and the relu
  // For the shortcut, if it is a chain.
  Out output_;
  Out input_gradient_;
};

}  // namespace syncopate::worker

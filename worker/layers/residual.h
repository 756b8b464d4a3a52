// Residual: y = f(x) + s(x), where f is any chain of layers and the shortcut s is the identity or a chain of its own
// (He et al. 2016, "Deep residual learning for image recognition", section 3.2). What follows the sum, such as the
// paper's relu, is a separate layer.
#pragma once

#include <memory>

#include "worker/layers/layer.h"

namespace syncopate::worker {

class Residual final : public Layer {
 public:
  // The tensors of `inner` must come directly before those of `shortcut` in the layout. `inner` must not use its output
  // in backward, since the sum is computed there; nor must `shortcut`, since both share one gradient. A null `shortcut`
  // is the identity: then `inner` must preserve the number of values, `input_values`.
  Residual(ComputeBackend& backend, std::unique_ptr<Layer> inner, std::unique_ptr<Layer> shortcut,
           std::size_t input_values, int batch_size);

  std::size_t output_values() const override { return inner_->output_values(); }
  double flops_per_sample() const override;
  Range params() const override;
  void initialize(std::uint64_t seed, std::span<float> weights) const override;
  void initialize_local_state(std::span<float> state) const override;
  void use_local_state(Out state) override;

  void forward(In weights, const Activations& values) override;
  void backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override;

 private:
  ComputeBackend& backend_;
  std::unique_ptr<Layer> inner_;
  std::unique_ptr<Layer> shortcut_;  // null: the identity
  // For the shortcut, if it is a chain.
  Out output_;
  Out input_gradient_;
};

}  // namespace syncopate::worker

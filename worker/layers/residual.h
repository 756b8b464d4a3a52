// Residual: y = f(x) + s(x), where f is any chain of layers and the shortcut s is the identity or a chain of its own
// (He et al. 2016, "Deep residual learning for image recognition", section 3.2). What stands behind the sum, as a relu
// does there, is a layer of its own.
#pragma once

#include <memory>

#include "worker/layers/layer.h"

namespace syncopate::worker {

class Residual final : public Layer {
 public:
  // Tensors of `inner` stand in the layout before those of `shortcut`, and nothing between them. `inner` must not use
  // its output in backward, since the sum is made there; nor must `shortcut`, since they have one gradient. A null
  // `shortcut` is the identity: then an image of `input_values` has as many values behind `inner`.
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
  // Of the shortcut, where it is a chain.
  Out output_;
  Out input_gradient_;
};

}  // namespace syncopate::worker

// Chain: a sequence of layers, as a layer. A model is one; so is the inside of a Residual.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "worker/layers/layer.h"

namespace syncopate::worker {

using Layers = std::vector<std::unique_ptr<Layer>>;

// Memory for the gradients between layers. A layer's backward reads the gradient of its output and writes that of its
// input, so two buffers are enough, used in turn, and chains that run one after another share them. A chain inside a
// layer of another chain runs while that chain's buffers are in use, and needs a pair of its own. In evaluation, where
// nothing is kept for backward, the same holds for the outputs.
class GradientScratch {
 public:
  // The backend must outlive it. `shared` false: each buffer is memory of its own, for chains whose backward_weights
  // reads the gradients again.
  explicit GradientScratch(ComputeBackend& backend, bool shared = true) : backend_(backend), shared_(shared) {}

  // Returns `count` numbers in buffer `number`, 0 or 1: the beginning of the existing buffer if it is large enough.
  Out buffer(std::size_t number, std::size_t count);

 private:
  ComputeBackend& backend_;
  const bool shared_;
  Out buffers_[2];
};

class Chain final : public Layer {
 public:
  // `layers` are in forward order, at least one. The first must not work in place, since the chain must not write its
  // input. All outputs but the last are allocated here. A chain for evaluation has no backward.
  Chain(ComputeBackend& backend, Layers layers, int batch_size, GradientScratch& scratch, Pass pass = Pass::kTraining);

  // From now on forward and backward call `before` with the part of the arena that a layer reads, just before the layer
  // runs.
  void before_reading(std::function<void(Range)> before) { before_reading_ = std::move(before); }

  std::size_t output_values() const override { return layers_.back()->output_values(); }
  bool uses_output_in_backward() const override;
  bool take_residual(bool relu) override;
  bool takes_residual_gradient() const override { return layers_.front()->takes_residual_gradient(); }
  double flops_per_sample() const override;
  Range params() const override;  // from the first layer's to the last one's
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
  void tell_before_reading(std::size_t layer) const;
  Activations activations_of(std::size_t layer, const Activations& values) const;
  // The gradient of layer `layer`'s output.
  Out gradient_of(std::size_t layer, const ActivationGradients& gradients) const;

  Layers layers_;
  std::size_t last_;  // this layer writes the chain's own output; those after it work in place
  std::function<void(Range)> before_reading_;
  // Outputs of the layers before last_.
  std::vector<Out> outputs_;
  std::vector<Out> gradients_;  // in training
};

}  // namespace syncopate::worker

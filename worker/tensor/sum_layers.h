// The two layers between which several workers have a part each of a layer divided by outputs and of one divided by
// inputs (Shoeybi et al. 2019, "Megatron-LM", section 3, where they are called f and g). Both work in place. The sums
// wait for the other workers.
#pragma once

#include "worker/layers/layer.h"
#include "worker/tensor/tensor_links.h"

namespace syncopate::worker {

// `values` are those of a sample. The sums must outlive the layer.
class SumLayer : public Layer {
 public:
  SumLayer(TensorSums& sums, std::size_t values, int batch_size) : sums_(sums), values_(values) {
    sums.reserve(values * static_cast<std::size_t>(batch_size));
  }

  std::size_t output_values() const override { return values_; }
  bool in_place() const override { return true; }

 protected:
  const TensorSums& sums_;

 private:
  std::size_t values_;
};

// f, in front of a layer divided by outputs: forward passes on the input, which all workers have; backward sums its
// gradient, to which each worker's outputs have added a part.
class SumGradients final : public SumLayer {
 public:
  using SumLayer::SumLayer;
  void forward(In /*weights*/, const Activations& /*values*/) override {}
  void backward(In /*weights*/, const Activations& /*values*/, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    sums_.sum(gradients.output);
  }
};

// g, behind a layer divided by inputs: forward sums the outputs, to which each worker's inputs have added a part;
// backward passes on the gradient, which all workers have.
class SumOutputs final : public SumLayer {
 public:
  using SumLayer::SumLayer;
  bool uses_output_in_backward() const override { return false; }
  void forward(In /*weights*/, const Activations& values) override { sums_.sum(values.output); }
  void backward(In /*weights*/, const Activations& /*values*/, const ActivationGradients& /*gradients*/,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {}
};

}  // namespace syncopate::worker

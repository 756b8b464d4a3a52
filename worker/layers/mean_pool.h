// MeanPool: global average pooling, the mean of each channel over the image (Lin et al. 2014, "Network in network",
// section 3.2).
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

class MeanPool final : public Layer {
 public:
  MeanPool(ComputeBackend& backend, const MeanPoolShape& shape) : backend_(backend), shape_(shape) {}

  std::size_t output_values() const override { return static_cast<std::size_t>(shape_.channels); }

  void forward(In /*weights*/, const Activations& values) override {
    backend_.mean_pool_forward(shape_, values.input, values.output);
  }
  void backward(In /*weights*/, const Activations& /*values*/, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    if (!gradients.input.empty()) backend_.mean_pool_backward(shape_, gradients.output, gradients.input);
  }

 private:
  ComputeBackend& backend_;
  MeanPoolShape shape_;
};

}  // namespace syncopate::worker

// Subsample: a shortcut without parameters to fewer pixels and more channels; the new channels are zeros (He et al.
// 2016, "Deep residual learning for image recognition", section 3.3, option A).
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

class Subsample final : public Layer {
 public:
  Subsample(ComputeBackend& backend, const SubsampleShape& shape) : backend_(backend), shape_(shape) {}

  std::size_t output_values() const override {
    return static_cast<std::size_t>(shape_.out_height()) * shape_.out_width() * shape_.out;
  }

  void forward(In /*weights*/, const Activations& values) override {
    backend_.subsample_forward(shape_, values.input, values.output);
  }
  void backward(In /*weights*/, const Activations& /*values*/, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    if (!gradients.input.empty()) backend_.subsample_backward(shape_, gradients.output, gradients.input);
  }

 private:
  ComputeBackend& backend_;
  SubsampleShape shape_;
};

}  // namespace syncopate::worker

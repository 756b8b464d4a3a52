// Flatten: turns an image into a row of values. Images are (height, width, channels) in memory, so nothing moves.
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

class Flatten final : public Layer {
 public:
  explicit Flatten(std::size_t values) : values_(values) {}

  std::size_t output_values() const override { return values_; }
  bool in_place() const override { return true; }

  void forward(In /*weights*/, const Activations& /*values*/) override {}
  void backward(In /*weights*/, const Activations& /*values*/, const ActivationGradients& /*gradients*/,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {}

 private:
  std::size_t values_;
};

}  // namespace syncopate::worker

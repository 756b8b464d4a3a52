// Attention: causal self-attention of several heads. The projections before and after it, which make its input
// (queries, keys and values, side by side) and use its output, are other layers.
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

class Attention final : public Layer {
 public:
  Attention(ComputeBackend& backend, const AttentionShape& shape)
      : backend_(backend), shape_(shape), storage_(backend.allocate_floats(backend.attention_storage(shape))) {}

  std::size_t output_values() const override { return static_cast<std::size_t>(shape_.context) * shape_.width; }
  bool uses_output_in_backward() const override { return true; }
  // Counts a score and a weighted value for each of the T (T+1) / 2 pairs that are not masked.
  double flops_per_sample() const override { return 2.0 * shape_.context * (shape_.context + 1) * shape_.width; }

  void forward(In /*weights*/, const Activations& values) override {
    backend_.attention_forward(shape_, values.input, values.output, storage_);
  }
  void backward(In /*weights*/, const Activations& values, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    backend_.attention_backward(shape_, values.input, values.output, gradients.output, storage_, gradients.input);
  }

 private:
  ComputeBackend& backend_;
  AttentionShape shape_;
  Floats storage_;  // the backend's, from the last forward
};

}  // namespace syncopate::worker

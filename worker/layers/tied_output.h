// TiedOutput: logits = x · tokensᵀ, with the embedding's tokens as weights (Press and Wolf 2017, "Using the output
// embedding to improve language models"). It has no tensor of its own: it reads the tokens, writes their gradient, to
// which the embedding adds, and reports nothing.
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

class TiedOutput final : public Layer {
 public:
  // `shape` has no bias, and counts the rows of the whole batch; `rows` counts those of each sample. `tokens`
  // (shape.out, shape.in) lie in the arena, and must be up to date when this layer reads them.
  TiedOutput(ComputeBackend& backend, const DenseShape& shape, Range tokens, int rows)
      : backend_(backend), shape_(shape), tokens_(tokens), rows_(rows) {}

  std::size_t output_values() const override { return static_cast<std::size_t>(shape_.out) * rows_; }
  Range params() const override { return tokens_; }
  double flops_per_sample() const override { return 2.0 * shape_.in * shape_.out * rows_; }

  void forward(In weights, const Activations& values) override {
    backend_.dense_forward(shape_, values.input, slice(weights, tokens_), {}, values.output);
  }
  void backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& /*ready*/) override {
    backend_.dense_backward(shape_, values.input, slice(weights, tokens_), gradients.output,
                            slice(arena_gradients, tokens_), {}, gradients.input);
  }

 private:
  ComputeBackend& backend_;
  DenseShape shape_;
  Range tokens_;
  int rows_;  // per sample
};

}  // namespace syncopate::worker

// Embedding: y[t] = tokens[ids[t]] + positions[t], with a learnt row for each token of a text and for each position. It
// is the first layer of a model: it reads the batch's whole numbers and has no input.
//
// The output layer may share the tokens (TiedOutput). In backward it writes their gradient first; this layer adds its
// own to it, and reports the tensor.
#pragma once

#include "worker/layers/affine.h"

namespace syncopate::worker {

class Embedding final : public Layer {
 public:
  Embedding(ComputeBackend& backend, const EmbeddingShape& shape, NormalInitialization initialization,
            ParamLayout& layout)
      : backend_(backend),
        shape_(shape),
        initialization_(initialization),
        index_(layout.add("tokens.weight", {shape.vocabulary, shape.width})),
        tokens_(layout.tensors()[index_].range),
        positions_(layout.tensors()[layout.add("positions.weight", {shape.context, shape.width})].range) {}

  // (vocabulary, width)
  Range tokens() const { return tokens_; }

  std::size_t output_values() const override { return static_cast<std::size_t>(shape_.context) * shape_.width; }
  Range params() const override { return joined(tokens_, positions_); }

  void initialize(std::uint64_t seed, std::span<float> weights) const override {
    initialization_.fill(seed, index_, slice(weights, tokens_));
    initialization_.fill(seed, index_ + 1, slice(weights, positions_));
  }

  void forward(In weights, const Activations& values) override {
    backend_.embedding_forward(shape_, values.ids, slice(weights, tokens_), slice(weights, positions_), values.output);
  }
  void backward(In /*weights*/, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override {
    backend_.embedding_backward(shape_, values.ids, gradients.output, slice(arena_gradients, tokens_),
                                slice(arena_gradients, positions_));
    ready(index_ + 1);
    ready(index_);
  }

 private:
  ComputeBackend& backend_;
  EmbeddingShape shape_;
  NormalInitialization initialization_;
  std::size_t index_;  // of the tokens in the layout; the positions follow
  Range tokens_, positions_;
};

}  // namespace syncopate::worker

// LayerNorm: each row is normalised by its own moments, then multiplied by a learnt scale and shifted by a learnt shift
// (Ba et al. 2016).
#pragma once

#include <algorithm>
#include <string>

#include "worker/layers/layer.h"

namespace syncopate::worker {

class LayerNorm final : public Layer {
 public:
  // `shape` counts the rows of the whole batch, `rows` those of each sample. Appends `name`.weight, the scale, and
  // `name`.bias, the shift, to the layout.
  LayerNorm(ComputeBackend& backend, const LayerNormShape& shape, int rows, const std::string& name,
            ParamLayout& layout)
      : backend_(backend),
        shape_(shape),
        rows_(rows),
        index_(layout.add(name + ".weight", {shape.width})),
        scale_(layout.tensors()[index_].range),
        shift_(layout.tensors()[layout.add(name + ".bias", {shape.width})].range),
        moments_(backend.allocate_floats(static_cast<std::size_t>(shape.rows) * 2)) {}

  std::size_t output_values() const override { return static_cast<std::size_t>(shape_.width) * rows_; }
  bool takes_residual_gradient() const override { return true; }
  Range params() const override { return joined(scale_, shift_); }

  void initialize(std::uint64_t /*seed*/, std::span<float> weights) const override {
    std::ranges::fill(slice(weights, scale_), 1.0f);
    std::ranges::fill(slice(weights, shift_), 0.0f);
  }

  void forward(In weights, const Activations& values) override {
    backend_.layer_norm_forward(shape_, values.input, slice(weights, scale_), slice(weights, shift_), values.output,
                                moments_);
  }
  void backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override {
    backend_.layer_norm_backward(shape_, values.input, slice(weights, scale_), moments_, gradients.output,
                                 gradients.residual, slice(arena_gradients, scale_), slice(arena_gradients, shift_),
                                 gradients.input);
    ready(index_ + 1);
    ready(index_);
  }

 private:
  ComputeBackend& backend_;
  LayerNormShape shape_;
  int rows_;           // per sample
  std::size_t index_;  // of the scale in the layout; the shift follows
  Range scale_, shift_;
  Floats moments_;  // from the last forward
};

}  // namespace syncopate::worker

// BiasAndRelu: y = max(x + b, 0), or without relu x + b, in place, with a bias for each channel. Behind a max pool it
// does, on fewer pixels, what a convolution's own bias and a relu in front of the pool would: max(x) + b = max(x + b).
#pragma once

#include <algorithm>
#include <string>

#include "worker/layers/layer.h"

namespace syncopate::worker {

class BiasAndRelu final : public Layer {
 public:
  // Appends `name`.bias to the layout. shape.rows are the pixels of the whole batch, `pixels` those of a sample.
  BiasAndRelu(ComputeBackend& backend, const BiasShape& shape, std::size_t pixels, const std::string& name,
              ParamLayout& layout)
      : backend_(backend),
        shape_(shape),
        values_(pixels * static_cast<std::size_t>(shape.columns)),
        index_(layout.add(name + ".bias", {shape.columns})),
        bias_(layout.tensors()[index_].range) {}

  std::size_t output_values() const override { return values_; }
  bool in_place() const override { return true; }
  bool uses_output_in_backward() const override { return shape_.relu; }

  Range params() const override { return bias_; }
  void initialize(std::uint64_t /*seed*/, std::span<float> weights) const override {
    std::ranges::fill(slice(weights, bias_), 0.0f);
  }

  void forward(In weights, const Activations& values) override {
    backend_.bias_forward(shape_, slice(weights, bias_), values.output);
  }
  void backward(In /*weights*/, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override {
    backend_.bias_backward(shape_, values.output, gradients.output, slice(arena_gradients, bias_));
    ready(index_);
  }

 private:
  ComputeBackend& backend_;
  BiasShape shape_;
  std::size_t values_;  // per sample
  std::size_t index_;   // in the layout
  Range bias_;
};

}  // namespace syncopate::worker

// Dense: y = x · wᵀ + b, or max(x · wᵀ + b, 0) if the shape has relu.
#pragma once

#include "worker/layers/affine.h"

namespace syncopate::worker {

class Dense final : public Layer {
 public:
  Dense(ComputeBackend& backend, const DenseShape& shape, const std::string& name, Initialization initialization,
        ParamLayout& layout)
      : Dense(backend, shape, AffineParams(layout, name, {shape.out, shape.in}, initialization), 1) {}
  // For samples of `rows` rows each; shape.batch counts the rows of the whole batch.
  Dense(ComputeBackend& backend, const DenseShape& shape, const AffineParams& params, int rows)
      : backend_(backend), shape_(shape), rows_(rows), params_(params) {}

  std::size_t output_values() const override { return static_cast<std::size_t>(shape_.out) * rows_; }
  bool uses_output_in_backward() const override { return shape_.relu; }
  double flops_per_sample() const override { return 2.0 * shape_.in * shape_.out * rows_; }

  Range params() const override { return params_.range(); }
  void initialize(std::uint64_t seed, std::span<float> weights) const override { params_.initialize(seed, weights); }

  void forward(In weights, const Activations& values) override {
    backend_.dense_forward(shape_, values.input, params_.weight(weights), params_.bias(weights), values.output);
  }
  void backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override {
    if (shape_.relu) backend_.relu_backward(values.output, gradients.output);
    backend_.dense_backward(shape_, values.input, params_.weight(weights), gradients.output,
                            params_.weight(arena_gradients), params_.bias(arena_gradients), gradients.input);
    params_.report(ready);
  }
  std::vector<Range> late_gradients() const override { return {params_.range()}; }
  void backward_inputs(In weights, const Activations& values, const ActivationGradients& gradients,
                       Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    if (shape_.relu) backend_.relu_backward(values.output, gradients.output);
    backend_.dense_backward(shape_, values.input, params_.weight(weights), gradients.output, {}, {}, gradients.input);
  }
  void backward_weights(const Activations& values, Out output_gradient, Out arena_gradients,
                        const TensorReady& ready) override {
    backend_.dense_backward(shape_, values.input, {}, output_gradient, params_.weight(arena_gradients),
                            params_.bias(arena_gradients), {});
    params_.report(ready);
  }

 private:
  ComputeBackend& backend_;
  DenseShape shape_;
  int rows_;  // per sample
  AffineParams params_;
};

}  // namespace syncopate::worker

// Conv2d: a convolution, with a bias for each output channel if the shape has one.
#pragma once

#include "worker/layers/affine.h"

namespace syncopate::worker {

class Conv2d final : public Layer {
 public:
  Conv2d(ComputeBackend& backend, const ConvShape& shape, const std::string& name, Initialization initialization,
         ParamLayout& layout)
      : backend_(backend),
        shape_(shape),
        params_(layout, name, {shape.out, shape.kernel, shape.kernel, shape.in}, initialization, shape.bias) {}

  std::size_t output_values() const override {
    return static_cast<std::size_t>(shape_.out_height()) * shape_.out_width() * shape_.out;
  }
  double flops_per_sample() const override {
    return 2.0 * static_cast<double>(output_values()) * shape_.kernel * shape_.kernel * shape_.in;
  }

  Range params() const override { return params_.range(); }
  void initialize(std::uint64_t seed, std::span<float> weights) const override { params_.initialize(seed, weights); }

  void forward(In weights, const Activations& values) override {
    backend_.conv2d_forward(shape_, values.input, params_.weight(weights), params_.bias(weights), values.output);
  }
  void backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override {
    backend_.conv2d_backward(shape_, values.input, params_.weight(weights), gradients.output,
                             params_.weight(arena_gradients), params_.bias(arena_gradients), gradients.input);
    params_.report(ready);
  }
  std::vector<Range> late_gradients() const override { return {params_.range()}; }
  void backward_inputs(In weights, const Activations& values, const ActivationGradients& gradients,
                       Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    backend_.conv2d_backward(shape_, values.input, params_.weight(weights), gradients.output, {}, {}, gradients.input);
  }
  void backward_weights(const Activations& values, Out output_gradient, Out arena_gradients,
                        const TensorReady& ready) override {
    backend_.conv2d_backward(shape_, values.input, {}, output_gradient, params_.weight(arena_gradients),
                             params_.bias(arena_gradients), {});
    params_.report(ready);
  }

 private:
  ComputeBackend& backend_;
  ConvShape shape_;
  AffineParams params_;
};

}  // namespace syncopate::worker

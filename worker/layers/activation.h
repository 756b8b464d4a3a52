// The layers that apply a function to each value.
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

// Relu: y = max(x, 0), in place.
class Relu final : public Layer {
 public:
  Relu(ComputeBackend& backend, std::size_t values) : backend_(backend), values_(values) {}

  std::size_t output_values() const override { return values_; }
  bool in_place() const override { return true; }

  void forward(In /*weights*/, const Activations& values) override { backend_.relu_forward(values.output); }
  void backward(In /*weights*/, const Activations& values, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    backend_.relu_backward(values.output, gradients.output);
  }

 private:
  ComputeBackend& backend_;
  std::size_t values_;
};

// Gelu: the Gaussian error linear unit (Hendrycks and Gimpel 2016), in its tanh form.
class Gelu final : public Layer {
 public:
  Gelu(ComputeBackend& backend, std::size_t values) : backend_(backend), values_(values) {}

  std::size_t output_values() const override { return values_; }

  void forward(In /*weights*/, const Activations& values) override {
    backend_.gelu_forward(values.input, values.output);
  }
  void backward(In /*weights*/, const Activations& values, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    backend_.gelu_backward(values.input, gradients.output, gradients.input);
  }

 private:
  ComputeBackend& backend_;
  std::size_t values_;  // per sample
};

}  // namespace syncopate::worker

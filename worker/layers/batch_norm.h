// BatchNorm: each channel is normalised, then multiplied by a learnt scale and shifted by a learnt shift (Ioffe &
// Szegedy 2015), followed by a relu if the shape has one. The last one of a Residual's chain makes the sum, and the
// relu behind it, in the pass in which it normalises.
#pragma once

#include <algorithm>
#include <string>

#include "worker/layers/layer.h"

namespace syncopate::worker {

class BatchNorm final : public Layer {
 public:
  // Appends `name`.weight, the scale, and `name`.bias, the shift, to the layout; appends `name`.running_mean and
  // `name`.running_var to the layout of the local state.
  BatchNorm(ComputeBackend& backend, const BatchNormShape& shape, std::size_t pixels, Pass pass,
            const std::string& name, ParamLayout& layout, ParamLayout& local_layout)
      : backend_(backend),
        shape_(shape),
        values_(pixels * static_cast<std::size_t>(shape.channels)),
        pass_(pass),
        index_(layout.add(name + ".weight", {shape.channels})),
        scale_(layout.tensors()[index_].range),
        shift_(layout.tensors()[layout.add(name + ".bias", {shape.channels})].range),
        mean_(local_layout.tensors()[local_layout.add(name + ".running_mean", {shape.channels})].range),
        variance_(local_layout.tensors()[local_layout.add(name + ".running_var", {shape.channels})].range),
        batch_{backend.allocate_floats(static_cast<std::size_t>(shape.channels)),
               backend.allocate_floats(static_cast<std::size_t>(shape.channels))} {}

  std::size_t output_values() const override { return values_; }
  bool uses_output_in_backward() const override { return shape_.residual && shape_.relu; }
  bool take_residual(bool relu) override {
    if (shape_.relu) return false;  // it would come before the sum
    shape_.residual = true;
    shape_.relu = relu;
    return true;
  }

  Range params() const override { return joined(scale_, shift_); }
  void initialize(std::uint64_t /*seed*/, std::span<float> weights) const override {
    std::ranges::fill(slice(weights, scale_), 1.0f);
    std::ranges::fill(slice(weights, shift_), 0.0f);
  }
  void initialize_local_state(std::span<float> state) const override {
    std::ranges::fill(slice(state, mean_), 0.0f);
    std::ranges::fill(slice(state, variance_), 1.0f);
  }
  void use_local_state(Floats state) override { running_ = {slice(state, mean_), slice(state, variance_)}; }

  void forward(In weights, const Activations& values) override {
    if (pass_ == Pass::kEvaluation) {
      backend_.batch_norm_inference(shape_, values.input, slice(weights, scale_), slice(weights, shift_), running_,
                                    values.residual, values.output);
    } else {
      backend_.batch_norm_forward(shape_, values.input, slice(weights, scale_), slice(weights, shift_), batch_,
                                  running_, values.residual, values.output);
    }
  }
  // Requires a forward in training.
  void backward(In weights, const Activations& values, const ActivationGradients& gradients, Out arena_gradients,
                const TensorReady& ready) override {
    backend_.batch_norm_backward(shape_, values.input, slice(weights, scale_), slice(weights, shift_), batch_,
                                 values.output, gradients.output, slice(arena_gradients, scale_),
                                 slice(arena_gradients, shift_), gradients.input);
    ready(index_ + 1);
    ready(index_);
  }

 private:
  ComputeBackend& backend_;
  BatchNormShape shape_;
  std::size_t values_;  // per sample
  Pass pass_;
  std::size_t index_;  // of the scale in the layout; the shift follows
  Range scale_, shift_;
  Range mean_, variance_;  // in the local state
  BatchMoments batch_;     // from the last forward
  RunningMoments running_;
};

}  // namespace syncopate::worker

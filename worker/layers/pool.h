// The layers that pool: MaxPool over windows, and MeanPool over the whole image.
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

// MaxPool: the largest value of each window, channel by channel.
class MaxPool final : public Layer {
 public:
  MaxPool(ComputeBackend& backend, const PoolShape& shape) : backend_(backend), shape_(shape) {
    const std::span<std::byte> memory = backend.allocate(static_cast<std::size_t>(shape.batch) * output_values());
    index_ = {reinterpret_cast<unsigned char*>(memory.data()), memory.size()};
  }

  std::size_t output_values() const override {
    return static_cast<std::size_t>(shape_.out_height()) * shape_.out_width() * shape_.channels;
  }

  void forward(In /*weights*/, const Activations& values) override {
    backend_.max_pool_forward(shape_, values.input, values.output, index_);
  }
  void backward(In /*weights*/, const Activations& /*values*/, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    if (!gradients.input.empty()) backend_.max_pool_backward(shape_, gradients.output, index_, gradients.input);
  }

 private:
  ComputeBackend& backend_;
  PoolShape shape_;
  std::span<unsigned char> index_;  // of the largest element of each window
};

// MeanPool: global average pooling, the mean of each channel over the image (Lin et al. 2014, "Network in network",
// section 3.2).
class MeanPool final : public Layer {
 public:
  MeanPool(ComputeBackend& backend, const MeanPoolShape& shape) : backend_(backend), shape_(shape) {}

  std::size_t output_values() const override { return static_cast<std::size_t>(shape_.channels); }

  void forward(In /*weights*/, const Activations& values) override {
    backend_.mean_pool_forward(shape_, values.input, values.output);
  }
  void backward(In /*weights*/, const Activations& /*values*/, const ActivationGradients& gradients,
                Out /*arena_gradients*/, const TensorReady& /*ready*/) override {
    if (!gradients.input.empty()) backend_.mean_pool_backward(shape_, gradients.output, gradients.input);
  }

 private:
  ComputeBackend& backend_;
  MeanPoolShape shape_;
};

}  // namespace syncopate::worker

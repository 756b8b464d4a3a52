// MaxPool: the largest value of each window, channel by channel.
#pragma once

#include "worker/layers/layer.h"

namespace syncopate::worker {

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

}  // namespace syncopate::worker

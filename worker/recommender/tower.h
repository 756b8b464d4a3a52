// Tower: dense layers under ReLU, one behind another, whose input has a gradient.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/layers/dense.h"

namespace syncopate::worker {

class Tower {
 public:
  // Layers of these widths, named "dense1" and so on.
  Tower(ComputeBackend& backend, ParamLayout& layout, int batch_size, int input_width, std::span<const int> widths) {
    int in = input_width;
    for (const int out : widths) {
      layers_.push_back(std::make_unique<Dense>(backend, DenseShape{batch_size, in, out, true},
                                                "dense" + std::to_string(layers_.size() + 1),
                                                Initialization::kHeUniform, layout));
      const auto values = static_cast<std::size_t>(batch_size) * static_cast<std::size_t>(out);
      outputs_.push_back(backend.allocate_floats(values));
      gradients_.push_back(backend.allocate_floats(values));
      in = out;
    }
  }

  Out output() const { return outputs_.back(); }             // (batch, last width), of the last forward
  Out output_gradient() const { return gradients_.back(); }  // to be written before backward
  double flops_per_sample() const {
    double sum = 0;
    for (const auto& layer : layers_) sum += layer->flops_per_sample();
    return sum;
  }

  void initialize(std::uint64_t seed, std::span<float> weights) const {
    for (const auto& layer : layers_) layer->initialize(seed, weights);
  }
  // `before`, unless null, is called with each part of the arena before it is read.
  void forward(In weights, In input, const std::function<void(Range)>& before) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (before) before(layers_[i]->params());
      layers_[i]->forward(weights, {i == 0 ? input : In(outputs_[i - 1]), outputs_[i]});
    }
  }
  void backward(In weights, In input, Out input_gradient, Out arena_gradients, const TensorReady& ready) {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      layers_[i]->backward(weights, {i == 0 ? input : In(outputs_[i - 1]), outputs_[i]},
                           {gradients_[i], i == 0 ? input_gradient : gradients_[i - 1]}, arena_gradients, ready);
    }
  }

 private:
  std::vector<std::unique_ptr<Dense>> layers_;
  std::vector<Out> outputs_, gradients_;  // of each layer
};

}  // namespace syncopate::worker

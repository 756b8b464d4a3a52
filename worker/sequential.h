// Sequential: a Model that is a chain of layers under a softmax and cross-entropy head.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/layers/layer.h"
#include "worker/model.h"

namespace syncopate::worker {

// The layers of a model in forward order, and the layout that they have put their tensors in.
struct LayerChain {
  ParamLayout layout;
  std::vector<std::unique_ptr<Layer>> layers;
};

class Sequential final : public Model {
 public:
  // The last layer's outputs are the logits. The first layer must not work in place: the images are not ours to write.
  Sequential(std::string name, LayerChain chain, int batch_size, ComputeBackend& backend);

  const std::string& name() const override { return name_; }
  const ParamLayout& layout() const override { return chain_.layout; }
  int batch_size() const override { return batch_size_; }
  double flops_per_sample() const override;

  void initialize(std::uint64_t seed, std::span<float> weights) const override;
  void forward(std::span<const float> weights, const BatchView& batch) override;
  void before_reading(std::function<void(Range)> before) override { before_reading_ = std::move(before); }
  void backward(std::span<const float> weights, std::span<float> gradients,
                const std::function<void(std::size_t)>& tensor_ready) override;
  LossAndCorrect loss() override { return backend_.loss(); }

 private:
  void allocate_activations();
  Activations activations_of(std::size_t layer) const;

  std::string name_;
  LayerChain chain_;
  int batch_size_;
  ComputeBackend& backend_;
  std::function<void(Range)> before_reading_;
  std::vector<Out> outputs_;    // of each layer
  std::vector<Out> gradients_;  // of each layer's output; layers in turn share two buffers
  In images_;                   // of the last forward
};

}  // namespace syncopate::worker

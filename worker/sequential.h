// Sequential: a Model that is a chain of layers under a softmax and cross-entropy head.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/layers/chain.h"
#include "worker/model.h"

namespace syncopate::worker {

// The layers of a model in forward order, and the layout that they have put their tensors in.
struct LayerChain {
  ParamLayout layout;
  Layers layers;
};

class Sequential final : public Model {
 public:
  // The last layer's outputs are the logits. The first layer must not work in place: the images are not ours to write.
  Sequential(std::string name, LayerChain chain, int batch_size, ComputeBackend& backend);

  const std::string& name() const override { return name_; }
  const ParamLayout& layout() const override { return layout_; }
  int batch_size() const override { return batch_size_; }
  double flops_per_sample() const override { return chain_.flops_per_sample(); }

  void initialize(std::uint64_t seed, std::span<float> weights) const override { chain_.initialize(seed, weights); }
  void forward(std::span<const float> weights, const BatchView& batch) override;
  void before_reading(std::function<void(Range)> before) override { chain_.before_reading(std::move(before)); }
  void backward(std::span<const float> weights, std::span<float> gradients,
                const std::function<void(std::size_t)>& tensor_ready) override;
  LossAndCorrect loss() override { return backend_.loss(); }

 private:
  std::string name_;
  int batch_size_;
  ComputeBackend& backend_;
  ParamLayout layout_;
  GradientScratch scratch_;  // of the chain
  Chain chain_;
  Out logits_;
  Out logits_gradient_;
  In images_;  // of the last forward
};

}  // namespace syncopate::worker

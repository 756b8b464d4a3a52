// Sequential: a Model that is a chain of layers under a softmax and cross-entropy head, or, where the batch has
// targets, under their squared error.
#pragma once

#include <string>
#include <utility>

#include "worker/chain_builder.h"
#include "worker/model.h"

namespace syncopate::worker {

// The head: computes the loss of a batch of `samples`, with `values` outputs of the chain and `labels` labels each, and
// writes its gradient by the outputs; both of the batch's samples.
struct ChainHead {
  int samples = 1;
  int labels = 1;
  std::size_t values = 0;

  void apply(ComputeBackend& backend, const BatchView& batch, In outputs, Out gradient) const;
};

class Sequential final : public Model {
 public:
  // The last layer's outputs are the logits, a row for each label. The first layer must not work in place, since the
  // images must not be written. `draft` is the one that the layers were built with.
  Sequential(std::string name, ModelDraft draft, Layers layers);

  const std::string& name() const override { return name_; }
  const ParamLayout& layout() const override { return layout_; }
  const ParamLayout& local_layout() const override { return local_layout_; }
  std::span<float> local_state() override { return local_state_; }
  int batch_size() const override { return batch_size_; }
  double flops_per_sample() const override { return chain_.flops_per_sample(); }

  void initialize(std::uint64_t seed, std::span<float> weights) const override { chain_.initialize(seed, weights); }
  void forward(In weights, const BatchView& batch) override;
  void before_reading(std::function<void(Range)> before) override { chain_.before_reading(std::move(before)); }
  void backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) override;
  LossAndCorrect loss(std::size_t turn) override { return backend_.loss(turn); }
  std::span<const float> logits() override { return backend_.host_view(logits_); }

 private:
  // A batch's images, or other values, in the type that the layers compute with.
  In values_of(const BatchView& batch);

  std::string name_;
  int batch_size_;
  int labels_;  // per sample
  ComputeBackend& backend_;
  ParamLayout layout_;
  ParamLayout local_layout_;
  GradientScratch scratch_;  // of the chain
  Chain chain_;
  Floats local_state_;
  Out logits_;
  Out logits_gradient_;
  Out converted_;             // the batch's values, if the backend computes with another type than theirs
  In images_;                 // from the last forward; may be other values than images
  std::span<const int> ids_;  // from the last forward
};

}  // namespace syncopate::worker

// TensorModel: a model of which this worker has a part of each layer that can be divided, as the trainer's Model. Its
// layout is that of the worker's shares alone. A batch is that of all workers that have the parts: each computes its
// outputs or inputs of the divided layers, and everything else as all others do, from the same bits. Waits for the
// others' sums are inside both passes; the links count them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "worker/model.h"
#include "worker/tensor/split_layout.h"
#include "worker/tensor/tensor_links.h"

namespace syncopate::worker {

// A model, or a stage of one, as a worker has it. The sums are those of its layers.
struct SplitModel {
  SplitLayout layout;
  std::unique_ptr<TensorSums> sums;
  std::unique_ptr<Model> model;
};

// Makes them, for batches of that many samples. The backend, which computes on the host, outlives them. Fails as
// make_model() does, and with invalid argument, saying what would be right, if the layers cannot be divided so.
Result<SplitModel> make_split_model(const std::string& spec, const SampleForm& form, const LayerPart& part,
                                    int batch_size, ComputeBackend& backend);
class TensorModel final : public Model {
 public:
  // `part`: the number of this worker's.
  TensorModel(SplitModel split, int part) : split_(std::move(split)), part_(part) {}

  const SplitLayout& split() const { return split_.layout; }
  TensorSums& sums() { return *split_.sums; }

  const std::string& name() const override { return inner().name(); }
  const ParamLayout& layout() const override { return inner().layout(); }
  const ParamLayout& local_layout() const override { return inner().local_layout(); }
  std::span<float> local_state() override { return split_.model->local_state(); }
  int batch_size() const override { return inner().batch_size(); }
  double flops_per_sample() const override { return inner().flops_per_sample(); }
  std::vector<Range> params() const override { return inner().params(); }
  // All have the loss, or the last stage's do; one counts it, and the samples.
  bool has_loss() const override { return part_ == 0 && inner().has_loss(); }
  void initialize(std::uint64_t seed, std::span<float> weights) const override { inner().initialize(seed, weights); }

  void forward(In weights, const BatchView& batch) override { split_.model->forward(weights, batch); }
  void before_reading(std::function<void(Range)> before) override { split_.model->before_reading(std::move(before)); }
  void backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) override {
    split_.sums->links->costs().begin_backward();
    split_.model->backward(weights, gradients, tensor_ready);
  }
  LossAndCorrect loss(std::size_t turn) override { return split_.model->loss(turn); }

 private:
  const Model& inner() const { return *split_.model; }

  SplitModel split_;
  const int part_;
};

}  // namespace syncopate::worker

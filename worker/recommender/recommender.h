// Recommender: the common part of models over tables. A sample's ids select rows of tables, from which a logit is
// computed; the loss is sigmoid and cross-entropy. It computes in the host's memory. `Ncf` (ncf.h) and `WideDeep`
// (wide_deep.h) define how the rows are combined.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/backend/compute_backend.h"
#include "worker/layers/chain.h"
#include "worker/layers/dense.h"
#include "worker/model.h"
#include "worker/recommender/row_embedding.h"

namespace syncopate::worker {

// Sigmoid and cross-entropy over one logit per sample, in the host's memory: log(1 + exp(logit)) - label · logit, in a
// form that stays finite for large logits. Labels are 0 or 1. Writes d(mean loss)/d(logits) to dlogits. A sample is
// correct if (logit > 0) equals its label.
LossAndCorrect sigmoid_cross_entropy(ConstFloats logits, std::span<const int> labels, Floats dlogits);

struct RecommenderShape {
  std::string name;  // as requested
  int dimensions = 16;
  EmbeddingKind kind = EmbeddingKind::kSparse;
  int batch_size = 1;
};

class Recommender : public Model {
 public:
  const std::string& name() const override { return shape_.name; }
  const ParamLayout& layout() const override { return layout_; }
  const ParamLayout& local_layout() const override { return local_layout_; }
  std::span<float> local_state() override { return {}; }
  int batch_size() const override { return shape_.batch_size; }
  double flops_per_sample() const override { return tower_->flops_per_sample() + head_->flops_per_sample(); }

  void initialize(std::uint64_t seed, std::span<float> weights) const override;
  // Empty if the embeddings are dense.
  std::span<const RowKeys> touched_rows(const BatchView& batch) override;
  void forward(In weights, const BatchView& batch) override;
  void before_reading(std::function<void(Range)> before) override;
  void backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) override;
  LossAndCorrect loss(std::size_t /*turn*/) override { return loss_; }
  std::span<const float> scores() override { return logit_.values; }

 protected:
  // For one sample: the widths of a row, of the tower's input and layers, and of what joins the tower's output before
  // the head. Parts also has what is added to the logit.
  struct Widths {
    int row = 1;
    int tower_input = 1;
    std::vector<int> tower;
    int beside_tower = 0;
  };
  struct Parts {
    Floats tower_input;
    Floats beside_tower;
    float& logit;
  };
  Recommender(const RecommenderShape& shape, const SampleForm& form, const Widths& widths, ComputeBackend& backend);

  // What each model defines, for one sample: combine computes `to` from its rows, and separate computes the rows'
  // gradients from the gradients of these. Both write all of `to`.
  virtual void combine(ConstFloats values, ConstFloats rows, const Parts& to) const = 0;
  virtual void separate(ConstFloats rows, const Parts& gradients, Floats to) const = 0;

 private:
  // A number of values for each sample of a batch, and the gradient of the loss with respect to them.
  struct Activation {
    std::size_t each = 0;
    Floats values, gradients;
  };
  Activation activation(int each);
  void combine_all(ConstFloats values);
  void separate_all();

  const RecommenderShape shape_;
  const std::size_t values_, beside_;  // per sample
  ComputeBackend& backend_;
  ParamLayout layout_;
  ParamLayout local_layout_;
  std::vector<RowEmbedding> tables_;
  std::vector<RowKeys> touched_;  // by table
  GradientScratch scratch_;       // for the tower
  std::optional<Chain> tower_;    // dense layers under ReLU; this and the next are set by the constructor
  std::optional<Dense> head_;
  std::function<void(Range)> before_reading_;
  Activation rows_, tower_input_, tower_output_, head_input_, extra_logit_, logit_;
  LossAndCorrect loss_;
};

}  // namespace syncopate::worker

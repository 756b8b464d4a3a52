// Model: layers over a ComputeBackend, with weights and gradients in the flat arena of a ParamLayout.
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/data/dataset.h"
#include "worker/layers/layer.h"

namespace syncopate::worker {

struct BatchView {
  std::span<const float> values;        // (batch, height, width, channels), or (batch, features)
  std::span<const int> labels;          // (batch, labels per sample)
  std::span<const int> ids = {};        // (batch, id columns)
  std::span<const float> targets = {};  // (batch), of regression
  // (batch): what each place costs to compute (data/sample_costs.h), an empty one nothing; empty: all cost the same.
  std::span<const float> costs = {};
  // A batch that is not full has this many places without a sample, at its end: zeros, and labels of -1. The mean over
  // its places, of which those count for nothing, times the weight is what the loss and its gradients are: so that the
  // mean over all workers is that over all samples of the global batch.
  int empty_places = 0;
  double weight = 1;
};

// Returns how long a batch takes to compute, as a multiple of one whose samples cost 1 each.
inline double cost_of(const BatchView& batch) {
  if (batch.costs.empty()) return 1;
  return std::accumulate(batch.costs.begin(), batch.costs.end(), 0.0) / static_cast<double>(batch.costs.size());
}

class Model {
 public:
  virtual ~Model() = default;

  virtual const std::string& name() const = 0;
  virtual const ParamLayout& layout() const = 0;
  virtual int batch_size() const = 0;
  virtual double flops_per_sample() const = 0;  // of forward; multiply and add count as two

  // The parts of the arena that this model initialises, and whether forward ends with a loss. Not so of all of it,
  // where other workers have other layers (pipeline/).
  virtual std::vector<Range> params() const { return {{0, layout().size()}}; }
  virtual bool has_loss() const { return true; }

  // Writes initial weights: He-uniform for layers under ReLU, LeCun-uniform for the last, unless its spec says
  // otherwise, and zero biases; for a gpt as gpt.h describes. The same seed gives the same weights.
  virtual void initialize(std::uint64_t seed, std::span<float> weights) const = 0;

  // State that training keeps beside the weights, such as the running moments of batch norms. It stays with its worker,
  // has no gradient and no optimizer, and is read in evaluation only. Empty for most models. A worker begins with its
  // initial values; evaluation uses the mean over all workers. It lies in the backend's memory, and lives as long as
  // the model.
  virtual const ParamLayout& local_layout() const = 0;
  virtual std::span<float> local_state() = 0;

  // By table of the layout, the rows that a batch (in the host's memory) touches; valid until the next call. If there
  // are tables, call this with each batch before forward.
  virtual std::span<const RowKeys> touched_rows(const BatchView& /*batch*/) { return {}; }

  // Batches have batch_size() samples; `weights` and `gradients` are arenas of layout().size() numbers of the backend's
  // element type; all lie where it computes. forward keeps what backward needs. backward overwrites `gradients` and
  // calls tensor_ready(index) from the last tensor to the first, each once that tensor's gradient is final (on a
  // device: once the work that computes it has been enqueued).
  virtual void forward(In weights, const BatchView& batch) = 0;
  // From now on forward and backward call `before` with each part of the arena before they read that part: until the
  // next call they read no other.
  virtual void before_reading(std::function<void(Range)> before) = 0;
  virtual void backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) = 0;
  // The same in two calls, where the model was made for it (pipeline/stage_model.h): the second makes the gradients of
  // weights that the first has left out, once others wait for nothing. Each calls tensor_ready for what it has made.
  virtual void backward_inputs(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) {
    backward(weights, gradients, tensor_ready);
  }
  virtual void backward_weights(Out /*gradients*/, const std::function<void(std::size_t)>& /*tensor_ready*/) {}
  // Returns the loss of the last forward pass; on a device, of the last in that turn (ComputeBackend::begin_turn), for
  // which it waits.
  virtual LossAndCorrect loss(std::size_t turn) = 0;
  LossAndCorrect loss() { return loss(0); }
  // The scores of the last forward pass, by sample: the higher, the likelier label 1 is. Only for models that tell two
  // classes apart by one logit; empty otherwise.
  virtual std::span<const float> scores() { return {}; }
  // The logits of the last forward pass in the host's memory, those of each label one after the other; empty for a
  // model that has scores.
  virtual std::span<const float> logits() { return {}; }
};

// The models that make_model makes, as help and refusals show them: "lenet", "gpt:LAYERS-HEADS-WIDTH".
std::vector<std::string> model_names();

// Returns the error for an invalid model: invalid argument, "--model=SPEC: message".
Status invalid_model(const std::string& spec, const std::string& message);

// `spec` is one of model_names(), with sizes in place of what stands for them: "mlp:784-1024-1024-10", "conv:32-64",
// "gpt:4-4-128"; of images it may end in ":init=glorot" or another choice of WeightInit (layers/initialization.h).
// Fails, saying what would be right, on an unknown name, and if the model does not fit the samples (mlp: first width =
// values of an image; last = classes; conv: at least 4x4; lenet: at least 16x16; resnet20 to resnet56: at least 8x8;
// resnet50: at least 32x32; gpt: texts). A model for evaluation has no backward pass. All activations are
// allocated here, by the backend, which must outlive the model.
Result<std::unique_ptr<Model>> make_model(const std::string& spec, const SampleForm& form, int batch_size,
                                          ComputeBackend& backend, Pass pass = Pass::kTraining);

// Returns the layout of such a model, and computes nothing else; the arena's range for the rows of a table is for one
// batch of the batch size. Fails as make_model does.
Result<ParamLayout> model_layout(const std::string& spec, const SampleForm& form, int batch_size = 1);
// The same for its local state.
Result<ParamLayout> local_state_layout(const std::string& spec, const SampleForm& form);

}  // namespace syncopate::worker

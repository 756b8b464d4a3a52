// Model: layers over a ComputeBackend, with weights and gradients in the flat arena of a ParamLayout.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/data/dataset.h"
#include "worker/layers/pass.h"

namespace syncopate::worker {

struct BatchView {
  std::span<const float> values;  // (batch, height, width, channels), or (batch, features)
  std::span<const int> labels;    // (batch, labels of a sample)
  std::span<const int> ids = {};  // (batch, id columns)
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const std::string& name() const = 0;
  virtual const ParamLayout& layout() const = 0;
  virtual int batch_size() const = 0;
  virtual double flops_per_sample() const = 0;  // forward, multiply and add counted as two

  // Writes initial weights: He-uniform for layers under ReLU, LeCun-uniform for the last, zero biases; a gpt as
  // gpt.h says. Same seed, same weights.
  virtual void initialize(std::uint64_t seed, std::span<float> weights) const = 0;

  // What training keeps beside the weights, such as the running moments of batch norms: it stays with its worker, has
  // no gradient and no optimizer, and is read in evaluation alone. Empty for most models. A worker begins with its
  // initial values; evaluation takes the mean over all workers. In the backend's memory, as long as the model lives.
  virtual const ParamLayout& local_layout() const = 0;
  virtual std::span<float> local_state() = 0;

  // By table of the layout, the rows that a batch (in the host's memory) touches; valid until the next call. Where
  // there are tables, each batch is given to it before it is given to forward.
  virtual std::span<const RowKeys> touched_rows(const BatchView& /*batch*/) { return {}; }

  // Batches have batch_size() samples; `weights` and `gradients` are arenas of layout().size() floats; all lie where
  // the backend computes. forward keeps what backward needs; backward overwrites `gradients` and calls
  // tensor_ready(index) from the last tensor to the first, each once that tensor's gradient is final (on a device: once
  // the work that makes it so has been given to it).
  virtual void forward(std::span<const float> weights, const BatchView& batch) = 0;
  // From now on forward calls `before` with each part of the arena before it reads it. None is asked for twice in a
  // pass.
  virtual void before_reading(std::function<void(Range)> before) = 0;
  virtual void backward(std::span<const float> weights, std::span<float> gradients,
                        const std::function<void(std::size_t)>& tensor_ready) = 0;
  // Of the last forward. On a device it waits.
  virtual LossAndCorrect loss() = 0;
  // Of the last forward, by sample: the higher, the likelier label 1 is. Of models that tell two classes apart by one
  // logit; empty otherwise.
  virtual std::span<const float> scores() { return {}; }
};

// Why there is no such model: invalid argument, "--model=SPEC: message".
Status invalid_model(const std::string& spec, const std::string& message);

// `spec` is "softmax", "mlp", "mlp:784-1024-1024-10", "lenet", "resnet20", "resnet32", "resnet56", "gpt", "gpt:4-4-128"
// or a recommender's (recommender/make_recommender.h). Fails, saying what would be right, on an unknown name and where
// the model does not fit the samples (mlp: first width = values of an image; last = classes; lenet: at least 16x16; a
// resnet: at least 8x8; gpt: texts). A model for evaluation has no backward pass. All activations are allocated here,
// by the backend. The backend must outlive the model.
Result<std::unique_ptr<Model>> make_model(const std::string& spec, const SampleForm& form, int batch_size,
                                          ComputeBackend& backend, Pass pass = Pass::kTraining);

// The layout that such a model has, with nothing computed; the room for rows of tables is that of the batch size. Fails
// as make_model does.
Result<ParamLayout> model_layout(const std::string& spec, const SampleForm& form, int batch_size = 1);
// The same of its local state.
Result<ParamLayout> local_state_layout(const std::string& spec, const SampleForm& form);

}  // namespace syncopate::worker

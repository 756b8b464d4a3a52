// Layer: one stage of a model, written once over the ComputeBackend. Its weights lie in the arena, at ranges that are
// fixed when it is built; the model owns the activations.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "common/param_layout.h"
#include "common/random.h"
#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

// The purpose of a model's forward pass: in training, a batch norm normalises by the moments of the batch; in
// evaluation, by the running moments.
enum class Pass { kTraining, kEvaluation };

// Reports that the gradient of the tensor with this index in the layout is final.
using TensorReady = std::function<void(std::size_t)>;

// What forward has read and written; backward gets the same again.
struct Activations {
  In input;                       // (batch, input values)
  Out output;                     // (batch, output_values()); the input's own memory if in_place()
  std::span<const int> ids = {};  // (batch, id columns): those of the model's batch
  In residual = {};               // (batch, output_values()): for a layer that has agreed to add one
};

// The gradients of the loss with respect to the activations.
struct ActivationGradients {
  Out output;        // an input; backward may overwrite it
  Out input;         // an output; empty if it is not needed; the same memory as `output` if in_place()
  In residual = {};  // for a layer that takes_residual_gradient(): to be added to `input`
};

// Returns the smallest range that covers both; an empty one is ignored.
inline Range joined(Range first, Range second) {
  if (first.size() == 0) return second;
  if (second.size() == 0) return first;
  return {std::min(first.begin, second.begin), std::max(first.end, second.end)};
}

class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::size_t output_values() const = 0;  // per sample
  virtual bool in_place() const { return false; }
  // Whether backward reads the output, or writes to its gradient. If not, others may use both: a sum is computed in the
  // output's memory, and its gradient is passed to all summands.
  virtual bool uses_output_in_backward() const { return in_place(); }
  // Asks that from now on forward adds Activations::residual to its result, and ends with a relu if `relu`. Then
  // backward leaves the residual's gradient in that of the output. Returns false, and changes nothing, if the layer
  // cannot.
  virtual bool take_residual(bool /*relu*/) { return false; }
  // Whether backward can add ActivationGradients::residual, its input's gradient by way of a residual connection.
  virtual bool takes_residual_gradient() const { return false; }
  virtual double flops_per_sample() const { return 0; }  // of forward; multiply and add count as two

  // The part of the arena that the layer reads; empty for none.
  virtual Range params() const { return {}; }

  virtual void initialize(std::uint64_t /*seed*/, std::span<float> /*weights*/) const {}

  // State that training keeps beside the weights, such as the running moments of a batch norm; it has no gradient and
  // no optimizer. `state` is that of the whole model: the first function gets it in the host's memory, the second in
  // the backend's, where it stays from then on.
  virtual void initialize_local_state(std::span<float> /*state*/) const {}
  virtual void use_local_state(Floats /*state*/) {}

  // `weights` and `arena_gradients` are whole arenas. backward overwrites this layer's part of `arena_gradients` and
  // reports its tensors, the last first.
  virtual void forward(In weights, const Activations& values) = 0;
  virtual void backward(In weights, const Activations& values, const ActivationGradients& gradients,
                        Out arena_gradients, const TensorReady& ready) = 0;

  // backward in two calls: backward_inputs leaves out the gradients of the tensors in late_gradients(), and does not
  // report them; backward_weights gets the same values and the same gradient of the output again, unchanged since, and
  // makes and reports these. A layer that cannot do so does all in the first.
  virtual std::vector<Range> late_gradients() const { return {}; }
  virtual void backward_inputs(In weights, const Activations& values, const ActivationGradients& gradients,
                               Out arena_gradients, const TensorReady& ready) {
    backward(weights, values, gradients, arena_gradients, ready);
  }
  virtual void backward_weights(const Activations& /*values*/, Out /*output_gradient*/, Out /*arena_gradients*/,
                                const TensorReady& /*ready*/) {}
};

// Layer::backward or Layer::backward_inputs.
using LayerBackward = void (Layer::*)(In weights, const Activations& values, const ActivationGradients& gradients,
                                      Out arena_gradients, const TensorReady& ready);

}  // namespace syncopate::worker

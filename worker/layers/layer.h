// Layer: one stage of a model, written once over the ComputeBackend. Its weights lie in the arena, at ranges that it
// was given when it was built; activations belong to the model.
#pragma once

#include <algorithm>
#include <functional>
#include <span>

#include "common/param_layout.h"
#include "common/random.h"
#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

// Says that the gradient of the tensor with this index in the layout is final.
using TensorReady = std::function<void(std::size_t)>;

// What forward has read and written; backward is given the same again.
struct Activations {
  In input;                       // (batch, input values)
  Out output;                     // (batch, output_values()); the input's own memory where in_place()
  std::span<const int> ids = {};  // (batch, id columns): those of the model's batch
};

// The gradients of the loss with respect to them.
struct ActivationGradients {
  Out output;  // given; backward may overwrite it
  Out input;   // to be written; empty where nobody needs it; the output's own memory where in_place()
};

// The smallest range that covers both; an empty one counts for nothing.
inline Range joined(Range first, Range second) {
  if (first.size() == 0) return second;
  if (second.size() == 0) return first;
  return {std::min(first.begin, second.begin), std::max(first.end, second.end)};
}

class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::size_t output_values() const = 0;  // of one sample
  virtual bool in_place() const { return false; }
  // Whether backward reads the output, or writes to its gradient. Where not, others may use both: a sum is made in the
  // output's memory, and its gradient given to all that were added.
  virtual bool uses_output_in_backward() const { return in_place(); }
  virtual double flops_per_sample() const { return 0; }  // forward; multiply and add are two

  // The part of the arena that it reads; empty for none.
  virtual Range params() const { return {}; }

  virtual void initialize(std::uint64_t /*seed*/, std::span<float> /*weights*/) const {}

  // What training keeps beside the weights, as a batch norm its running moments: no gradient, no optimizer. `state` is
  // the model's whole, the first in the host's memory, the second in the backend's, where it stays from then on.
  virtual void initialize_local_state(std::span<float> /*state*/) const {}
  virtual void use_local_state(Out /*state*/) {}

  // `weights` and `gradients` are whole arenas. backward overwrites this layer's part of `gradients` and reports its
  // tensors, the last first.
  virtual void forward(In weights, const Activations& values) = 0;
  virtual void backward(In weights, const Activations& values, const ActivationGradients& gradients,
                        Out arena_gradients, const TensorReady& ready) = 0;
};

}  // namespace syncopate::worker

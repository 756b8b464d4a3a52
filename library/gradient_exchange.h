// GradientExchange: what becomes of a step's gradients, as an optimizer sees it: each is handed over once, in any
// order, and the step is finished. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"
#include "common/sync_strategy.h"
#include "library/group.h"
#include "library/training_options.h"

namespace syncopate::library {

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  virtual const Group& group() const = 0;

  // Fails with invalid argument unless the next step can be made at this rate.
  virtual Status check_rate(double learning_rate) const { return check_learning_rate(learning_rate); }
  // The step's first gradient is there; `learning_rate` is the step's, which check_rate() takes, if the exchange makes
  // the update.
  virtual void begin_step(double learning_rate) = 0;
  // Whether the tensor's gradient has been handed over in this step.
  virtual bool has(std::size_t tensor) const = 0;
  // The gradient of `tensor` is final. It must stay where it is, and be left alone, until finish_step has returned. If
  // it is absent, this rank has none and `values` are zeros. Does not wait.
  virtual void gradient(std::size_t tensor, std::span<float> values, bool is_absent) = 0;
  // Returns once the step is done. Requires that all gradients have been handed over.
  virtual Result<SyncStats> finish_step() = 0;
  // After finish_step: the tensors of which no rank had a gradient.
  virtual std::vector<std::size_t> absent_everywhere() const = 0;
  // After a failure: the rank that was waited for; -1 if unknown.
  virtual int missed() { return -1; }
  // All ranks agree to stop. No step may follow. Servers may end once all ranks have returned.
  virtual Status leave() = 0;
};

}  // namespace syncopate::library

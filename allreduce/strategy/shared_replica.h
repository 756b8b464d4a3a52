// SharedReplica: the weights of one worker under asynchronous gossip. Two threads change them in turn: the compute
// thread by its updates, and the communication thread by averages with others' (Lian et al. 2018, AD-PSGD, algorithm 1:
// the two interleave, each is atomic). Gradients are computed from a copy rather than from this memory, so that nothing
// waits for them.
//
// An active worker lends its weights for a meeting, from the update after which it asks until the mean has arrived:
// they are being sent meanwhile, and the next update waits. A passive worker's weights are locked only while they are
// averaged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "common/threads.h"

namespace syncopate::allreduce {

class SharedReplica {
 public:
  // Nobody else may use `weights` during the life of this object, except as it allows. `threads`, to which those that
  // use it belong, outlives it; their clock learns of averages (Clock::processed).
  explicit SharedReplica(std::span<float> weights, Threads& threads = os_threads())
      : weights_(weights), clock_(threads.clock()), monitor_(threads.make_monitor()) {}

  // For the compute thread.

  // Changes the weights by `work`, once nobody else uses them; with `lend`, they are on loan afterwards. Returns how
  // many averages have changed them since the last call. Waits for a meeting that is under way, whose own waits have
  // deadlines.
  std::int64_t change(const std::function<void(std::span<float> weights)>& work, bool lend);
  // The weights are never on loan again: wait_for_loan returns false. Any thread.
  void close();

  // For the communication thread of an active worker.

  // Returns true once the weights are on loan, and false when they never will be again.
  bool wait_for_loan();
  // The weights on loan, which do not change during the loan.
  std::span<const float> loaned() const { return weights_; }
  // Ends the loan: sets the weights to `mean` or, if that is empty, leaves them unchanged.
  void give_back(std::span<const float> mean);

  // For the communication thread of a passive worker: writes the mean of the weights and `theirs` to `mean` and to the
  // weights, with the same bits. All three must have the same length and must not overlap.
  void average_with(std::span<const float> theirs, std::span<float> mean);

 private:
  const std::span<float> weights_;
  const Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;  // guards all of this; notified of a change of is_on_loan_ or is_closed_
  bool is_on_loan_ = false;
  bool is_closed_ = false;
  std::int64_t averages_ = 0;  // since the last change()
};

}  // namespace syncopate::allreduce

// SharedReplica: the weights of one worker under asynchronous gossip, which two threads change in turn: the compute
// thread by its updates, the communication thread by averages with others' (Lian et al. 2018, AD-PSGD, algorithm 1: the
// two interleave, each is atomic). Gradients are not computed from this memory but from a copy, so that nothing waits
// for them.
//
// An active worker lends its weights for a meeting, from the update behind which it asks until the mean has come: they
// are on their way meanwhile, and the next update waits. A passive worker's are locked only while they are averaged.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

namespace syncopate::allreduce {

class SharedReplica {
 public:
  // Nobody else uses `weights` while this lives, but as it says.
  explicit SharedReplica(std::span<float> weights) : weights_(weights) {}

  // For the compute thread.

  // Changes the weights as `work` does, once nobody else has them; if `lend`, they are then lent. Returns how many
  // averages have changed them since the last call. Waits for a meeting that is under way, whose own waits have
  // deadlines.
  std::int64_t change(const std::function<void(std::span<float> weights)>& work, bool lend);
  // They are never lent again: wait_for_loan returns false. Any thread.
  void close();

  // For the communication thread of an active worker.

  // Returns once the weights are lent; false when they never will be again.
  bool wait_for_loan();
  // While they are lent; they stay as they are.
  std::span<const float> lent() const { return weights_; }
  // Ends the loan: the weights are `mean`, or, if that is empty, what they were.
  void give_back(std::span<const float> mean);

  // For the communication thread of a passive worker: the mean of the weights and `theirs`, in `mean` and in the
  // weights, the same bits. All three are of one length, and lie apart.
  void average_with(std::span<const float> theirs, std::span<float> mean);

 private:
  const std::span<float> weights_;
  std::mutex mutex_;
  std::condition_variable changed_;  // is_lent_ or is_closed_
  bool is_lent_ = false;
  bool is_closed_ = false;
  std::int64_t averages_ = 0;  // since the last change
};

}  // namespace syncopate::allreduce

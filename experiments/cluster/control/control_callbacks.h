// ControlCallbacks: the functions that the control thread calls when news arrives. It also stores the news for
// functions that are registered later.
//
// Any thread may register a callback, which is called until its subscription ends: it does not run any more once that
// has ended. A mutex is held while a callback runs, which therefore must neither register one nor end a subscription.
// The board's mutex may be taken meanwhile, so this object must not be called by a thread that holds that one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "allreduce/collective/collective_activity.h"
#include "experiments/cluster/control/answer_board.h"
#include "experiments/cluster/control/subscription.h"

namespace syncopate::experiments {

class ControlCallbacks {
 public:
  // `board` knows the membership epochs, and outlives this.
  explicit ControlCallbacks(AnswerBoard& board) : board_(board) {}

  // ControlClient says when each is called. Those of a stop, of lost workers and of a new membership epoch are called
  // at once for news that has arrived before. This object must outlive the subscriptions.
  Subscription on_stop(std::function<void()> callback);
  Subscription on_worker_lost(std::function<void(int rank)> callback);
  Subscription on_regroup(std::function<void()> callback);
  Subscription on_checkpoint_order(std::function<void(std::int64_t membership_epoch, std::int64_t step)> callback);
  Subscription on_heartbeat(std::function<allreduce::CollectiveState()> state);

  // News, reported by the control thread.

  // Called once.
  void stop();
  void lose_worker(int rank);
  // Also tells the board. A thread that sees the new membership epoch there is not told any more about workers lost
  // before.
  void begin_membership(const MembershipEpoch& membership_epoch);
  void order_checkpoint(std::int64_t membership_epoch, std::int64_t step);
  // Returns what the function that was last registered by on_heartbeat() returns; none if there is no function.
  std::optional<allreduce::CollectiveState> collective_state();

 private:
  template <typename Function>
  using Callbacks = std::map<std::int64_t, std::function<Function>>;  // in the order in which they were registered

  // Requires mutex_.
  template <typename Function>
  Subscription add(Callbacks<Function>& callbacks, std::function<Function> callback);

  AnswerBoard& board_;

  std::mutex mutex_;  // guards what follows; held while a callback runs
  std::int64_t registered_ = 0;
  Callbacks<void()> stop_;
  Callbacks<void(int)> worker_lost_;
  Callbacks<void()> regroup_;
  Callbacks<void(std::int64_t, std::int64_t)> checkpoint_order_;
  Callbacks<allreduce::CollectiveState()> collective_state_;
  std::vector<int> lost_workers_;  // in this membership epoch
  bool stopped_ = false;
};

}  // namespace syncopate::experiments

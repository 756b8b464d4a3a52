// ControlCallbacks: the functions that the control thread calls when news arrives. It also stores the news for
// functions that are registered later.
//
// Any thread may register a callback, and removes it by registering a null function: it does not run any more once that
// call has returned. A mutex is held while a callback runs, which therefore must neither register nor remove one. The
// board's mutex may be taken meanwhile, so this object must not be called by a thread that holds that one.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "allreduce/collective/collective_activity.h"
#include "experiments/cluster/control/answer_board.h"

namespace syncopate::experiments {

class ControlCallbacks {
 public:
  // `board` knows the membership epochs, and outlives this.
  explicit ControlCallbacks(AnswerBoard& board) : board_(board) {}

  // ControlClient says when each is called. Those of a stop, of lost workers and of a new membership epoch are called
  // at once for news that has arrived before.
  void on_stop(std::function<void()> callback);
  void on_worker_lost(std::function<void(int rank)> callback);
  void on_regroup(std::function<void()> callback);
  void on_checkpoint_order(std::function<void(std::int64_t generation, std::int64_t step)> callback);
  void on_heartbeat(std::function<allreduce::CollectiveState()> state);

  // News, reported by the control thread.

  // Called once.
  void stop();
  void lose_worker(int rank);
  // Also tells the board. A thread that sees the new membership epoch there is not told any more about workers lost
  // before.
  void begin_generation(const Generation& generation);
  void order_checkpoint(std::int64_t generation, std::int64_t step);
  // Returns what the function of on_heartbeat() returns; none if there is no function.
  std::optional<allreduce::CollectiveState> collective_state();

 private:
  AnswerBoard& board_;

  std::mutex mutex_;  // guards what follows; held while a callback runs
  std::function<void()> stop_;
  std::function<void(int)> worker_lost_;
  std::function<void()> regroup_;
  std::function<void(std::int64_t, std::int64_t)> checkpoint_order_;
  std::function<allreduce::CollectiveState()> collective_state_;
  std::vector<int> lost_workers_;  // in this membership epoch
  bool stopped_ = false;
};

}  // namespace syncopate::experiments

// ControlCallbacks: whom the control thread calls when news comes, and what those who ask for it later have missed.
//
// Any thread may register a callback, and takes it back with a null function: it does not run any more once that call
// has returned. For that a mutex is held while a callback runs, which therefore must neither register nor take back
// one. The board's mutex may be taken meanwhile; nobody who holds that one calls here.
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
  // `board` knows the generations, and outlives this.
  explicit ControlCallbacks(AnswerBoard& board) : board_(board) {}

  // What each is called for: see ControlClient. Those of a stop, of lost workers and of a new generation are called at
  // once for what has come before.
  void on_stop(std::function<void()> callback);
  void on_worker_lost(std::function<void(int rank)> callback);
  void on_regroup(std::function<void()> callback);
  void on_checkpoint_order(std::function<void(std::int64_t generation, std::int64_t step)> callback);
  void on_heartbeat(std::function<allreduce::CollectiveState()> state);

  // News, for the control thread.

  // Once.
  void stop();
  void lose_worker(int rank);
  // Also tells the board. Whoever sees the new generation there is not told any more who was lost before it.
  void begin_generation(const Generation& generation);
  void order_checkpoint(std::int64_t generation, std::int64_t step);
  // What on_heartbeat() is to be asked for; none where nobody is asked.
  std::optional<allreduce::CollectiveState> collective_state();

 private:
  AnswerBoard& board_;

  std::mutex mutex_;  // of what follows; held while a callback runs
  std::function<void()> stop_;
  std::function<void(int)> worker_lost_;
  std::function<void()> regroup_;
  std::function<void(std::int64_t, std::int64_t)> checkpoint_order_;
  std::function<allreduce::CollectiveState()> collective_state_;
  std::vector<int> lost_workers_;  // in this generation
  bool stopped_ = false;
};

}  // namespace syncopate::experiments

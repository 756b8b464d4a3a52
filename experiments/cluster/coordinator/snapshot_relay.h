// SnapshotRelay: weights on their way from workers to the evaluator, each with the mean of the workers' local states of
// its point, which it waits for. What has been sent is kept until it has been evaluated, so that an evaluator that was
// started again can have it: as many as may wait (evaluation_backlog.h), and the final weights. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>
#include <zmq.hpp>

#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/coordinator/local_states.h"

namespace syncopate::experiments {

class SnapshotRelay {
 public:
  struct Hands {
    // To the evaluator.
    std::function<void(const control::FromCoordinator& message, zmq::message_t weights)> send;
    // Of the final ones: the snapshot, its weights, and the mean of the local states.
    std::function<void(const control::Snapshot& stamp, std::span<const float> weights, std::span<const float> state)>
        on_final;
  };

  // Local states have `local_state_size` values: none for most models.
  SnapshotRelay(std::size_t local_state_size, Hands hands)
      : local_states_(local_state_size), hands_(std::move(hands)) {}

  void add(control::Snapshot stamp, zmq::message_t weights) { held_.push_back({std::move(stamp), std::move(weights)}); }
  // False, and nothing is kept, if it has another size than this model's.
  bool add_local_state(int worker, const control::LocalState& state);

  // Sends what can be sent, in the order in which it came; `workers` are those that are still there: of others nothing
  // is waited for.
  void pass_on(const std::vector<int>& workers);

  // There is a new evaluator, which has nothing yet.
  void send_again();
  void on_evaluated(std::int64_t point, bool final);
  // Nobody evaluates any more: nothing is sent or kept.
  void give_up();

 private:
  struct Held {
    control::Snapshot stamp;
    zmq::message_t weights;
  };

  void send(const control::Snapshot& stamp, const zmq::message_t& weights);

  LocalStates local_states_;
  const Hands hands_;
  std::deque<Held> held_;
  std::deque<Held> sent_;  // not evaluated yet
  bool given_up_ = false;
};

}  // namespace syncopate::experiments

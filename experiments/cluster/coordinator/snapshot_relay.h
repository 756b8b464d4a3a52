// SnapshotRelay: relays weights from workers to the evaluator. For each snapshot it waits for the mean of the workers'
// local states at its point. Snapshots that were sent are kept until they have been evaluated, so that they can be sent
// to a restarted evaluator: as many as may wait (evaluation_backlog.h), and the final weights. Used by one thread.
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
    // Sends a message to the evaluator.
    std::function<void(const control::FromCoordinator& message, zmq::message_t weights)> send;
    // Receives the final snapshot, its weights, and the mean of the local states.
    std::function<void(const control::Snapshot& stamp, std::span<const float> weights, std::span<const float> state)>
        on_final;
  };

  // Local states have `local_state_size` values: none for most models.
  SnapshotRelay(std::size_t local_state_size, Hands hands)
      : local_states_(local_state_size), hands_(std::move(hands)) {}

  void add(control::Snapshot stamp, zmq::message_t weights) { held_.push_back({std::move(stamp), std::move(weights)}); }
  // Returns false and keeps nothing if the state does not have this model's size.
  bool add_local_state(int worker, const control::LocalState& state);

  // Sends what can be sent, in the order of arrival. `workers` are those that are still there; it waits for no others.
  void pass_on(const std::vector<int>& workers);

  // There is a new evaluator, which has received nothing yet.
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

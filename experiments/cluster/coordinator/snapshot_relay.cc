#include "experiments/cluster/coordinator/snapshot_relay.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace syncopate::experiments {

bool SnapshotRelay::add_local_state(int worker, const control::LocalState& state) {
  return local_states_.add(worker, state.point(),
                           {state.values().data(), static_cast<std::size_t>(state.values().size())});
}

void SnapshotRelay::pass_on(const std::vector<int>& workers) {
  while (!held_.empty()) {
    Held& next = held_.front();
    const std::optional<std::vector<float>> state = local_states_.mean(next.stamp.point(), workers);
    if (!state) return;
    if (next.stamp.final()) {
      hands_.on_final(next.stamp, {next.weights.data<float>(), next.weights.size() / sizeof(float)}, *state);
    }
    next.stamp.mutable_local_state()->Assign(state->begin(), state->end());
    if (!given_up_) {
      send(next.stamp, next.weights);
      sent_.push_back(std::move(next));
    }
    held_.pop_front();
  }
  local_states_.forget_what_is_behind(workers);
}

// The weights are not copied: both messages share the same memory.
void SnapshotRelay::send(const control::Snapshot& stamp, const zmq::message_t& weights) {
  control::FromCoordinator message;
  *message.mutable_snapshot() = stamp;
  zmq::message_t same;
  same.copy(const_cast<zmq::message_t&>(weights));
  hands_.send(message, std::move(same));
}

void SnapshotRelay::send_again() {
  for (const Held& one : sent_) send(one.stamp, one.weights);
}

void SnapshotRelay::on_evaluated(std::int64_t point, bool final) {
  const auto found = std::ranges::find_if(
      sent_, [&](const Held& one) { return one.stamp.point() == point && one.stamp.final() == final; });
  if (found != sent_.end()) sent_.erase(found);
}

void SnapshotRelay::give_up() {
  given_up_ = true;
  sent_.clear();
}

}  // namespace syncopate::experiments

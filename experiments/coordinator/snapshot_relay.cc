#include "experiments/coordinator/snapshot_relay.h"

#include <optional>
#include <utility>

namespace syncopate::experiments {

bool SnapshotRelay::add_local_state(int worker, const control::LocalState& state) {
  return local_states_.add(worker, state.epoch(),
                           {state.values().data(), static_cast<std::size_t>(state.values().size())});
}

void SnapshotRelay::pass_on(const std::vector<int>& workers) {
  while (!held_.empty()) {
    Held& next = held_.front();
    const std::optional<std::vector<float>> state = local_states_.mean(next.stamp.epoch(), workers);
    if (!state) return;
    if (next.stamp.final()) {
      hands_.on_final(next.stamp, {next.weights.data<float>(), next.weights.size() / sizeof(float)}, *state);
    }
    control::FromCoordinator message;
    *message.mutable_snapshot() = next.stamp;
    message.mutable_snapshot()->mutable_local_state()->Assign(state->begin(), state->end());
    hands_.send(message, std::move(next.weights));
    held_.pop_front();
  }
  local_states_.forget_what_is_behind(workers);
}

}  // namespace syncopate::experiments

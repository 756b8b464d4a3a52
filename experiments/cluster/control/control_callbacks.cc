#include "experiments/cluster/control/control_callbacks.h"

#include <utility>

namespace syncopate::experiments {

void ControlCallbacks::on_stop(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  stop_ = std::move(callback);
  if (stopped_ && stop_) stop_();
}

void ControlCallbacks::on_worker_lost(std::function<void(int)> callback) {
  const std::lock_guard lock(mutex_);
  worker_lost_ = std::move(callback);
  if (!worker_lost_) return;
  for (int rank : lost_workers_) worker_lost_(rank);
}

void ControlCallbacks::on_regroup(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  regroup_ = std::move(callback);
  if (regroup_ && board_.is_superseded()) regroup_();
}

void ControlCallbacks::on_checkpoint_order(std::function<void(std::int64_t, std::int64_t)> callback) {
  const std::lock_guard lock(mutex_);
  checkpoint_order_ = std::move(callback);
}

void ControlCallbacks::on_heartbeat(std::function<allreduce::CollectiveState()> state) {
  const std::lock_guard lock(mutex_);
  collective_state_ = std::move(state);
}

void ControlCallbacks::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (stop_) stop_();
}

void ControlCallbacks::lose_worker(int rank) {
  const std::lock_guard lock(mutex_);
  lost_workers_.push_back(rank);
  if (worker_lost_) worker_lost_(rank);
}

// Holds one lock throughout, so that a callback registered meanwhile is called exactly once, here or there.
void ControlCallbacks::begin_generation(const Generation& generation) {
  const std::lock_guard lock(mutex_);
  if (!board_.proclaim(generation)) return;
  lost_workers_.clear();
  if (regroup_ && board_.is_superseded()) regroup_();
}

void ControlCallbacks::order_checkpoint(std::int64_t generation, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (checkpoint_order_) checkpoint_order_(generation, step);
}

std::optional<allreduce::CollectiveState> ControlCallbacks::collective_state() {
  const std::lock_guard lock(mutex_);
  return collective_state_ ? std::optional(collective_state_()) : std::nullopt;
}

}  // namespace syncopate::experiments

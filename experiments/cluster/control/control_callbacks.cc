#include "experiments/cluster/control/control_callbacks.h"

#include <utility>

namespace syncopate::experiments {

template <typename Function>
Subscription ControlCallbacks::add(Callbacks<Function>& callbacks, std::function<Function> callback) {
  const std::int64_t number = ++registered_;
  callbacks.emplace(number, std::move(callback));
  return Subscription([this, &callbacks, number] {
    const std::lock_guard lock(mutex_);
    callbacks.erase(number);
  });
}

Subscription ControlCallbacks::on_stop(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (stopped_) callback();
  return add(stop_, std::move(callback));
}

Subscription ControlCallbacks::on_worker_lost(std::function<void(int)> callback) {
  const std::lock_guard lock(mutex_);
  for (const int rank : lost_workers_) callback(rank);
  return add(worker_lost_, std::move(callback));
}

Subscription ControlCallbacks::on_regroup(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (board_.is_superseded()) callback();
  return add(regroup_, std::move(callback));
}

Subscription ControlCallbacks::on_checkpoint_order(std::function<void(std::int64_t, std::int64_t)> callback) {
  const std::lock_guard lock(mutex_);
  return add(checkpoint_order_, std::move(callback));
}

Subscription ControlCallbacks::on_heartbeat(std::function<allreduce::CollectiveState()> state) {
  const std::lock_guard lock(mutex_);
  return add(collective_state_, std::move(state));
}

void ControlCallbacks::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& [number, callback] : stop_) callback();
}

void ControlCallbacks::lose_worker(int rank) {
  const std::lock_guard lock(mutex_);
  lost_workers_.push_back(rank);
  for (const auto& [number, callback] : worker_lost_) callback(rank);
}

// Holds one lock throughout, so that a callback registered meanwhile is called exactly once, here or there.
void ControlCallbacks::begin_membership(const MembershipEpoch& membership_epoch) {
  const std::lock_guard lock(mutex_);
  if (!board_.proclaim(membership_epoch)) return;
  lost_workers_.clear();
  if (!board_.is_superseded()) return;
  for (const auto& [number, callback] : regroup_) callback();
}

void ControlCallbacks::order_checkpoint(std::int64_t membership_epoch, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, callback] : checkpoint_order_) callback(membership_epoch, step);
}

std::optional<allreduce::CollectiveState> ControlCallbacks::collective_state() {
  const std::lock_guard lock(mutex_);
  return collective_state_.empty() ? std::nullopt : std::optional(collective_state_.rbegin()->second());
}

}  // namespace syncopate::experiments

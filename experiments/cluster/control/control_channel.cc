#include "experiments/cluster/control/control_channel.h"

#include <algorithm>

#include "experiments/cluster/control/wire_records.h"

namespace syncopate::experiments {

using control::FromCoordinator;
using control::ToCoordinator;

ControlChannel::ControlChannel(Role role, int rank, std::shared_ptr<Patience> patience, Threads& threads)
    : patience_(std::move(patience)), clock_(threads.clock()), monitor_(threads.make_monitor()), board_(role, rank) {}

// To the coordinator.

void ControlChannel::post(ToCoordinator message, std::optional<zmq::message_t> weights) {
  {
    const std::lock_guard lock(*monitor_);
    outgoing_.push_back({std::move(message), std::move(weights)});
  }
  wake();
}

void ControlChannel::add(const StepRecord& record) {
  const std::lock_guard lock(*monitor_);
  steps_.push_back({record, board_.joined()});
  if (steps_.size() == kMostPackedSteps) queue_records();
}

void ControlChannel::queue_records() {
  if (!steps_.empty()) outgoing_.emplace_back().steps = std::exchange(steps_, {});
}

void ControlChannel::post_records() {
  {
    const std::lock_guard lock(*monitor_);
    queue_records();
  }
  wake();
}

void ControlChannel::fail(const control::Failure& failure) {
  {
    const std::lock_guard lock(*monitor_);
    if (std::exchange(failed_, true)) return;
    queue_records();
    *outgoing_.emplace_back().message.mutable_failure() = failure;
  }
  wake();
}

std::deque<ControlChannel::Outgoing> ControlChannel::take_outgoing() {
  std::deque<Outgoing> taken;
  {
    const std::lock_guard lock(*monitor_);
    taken = std::exchange(outgoing_, {});
  }
  for (Outgoing& each : taken) {
    if (!each.steps.empty()) each.message.mutable_steps()->set_packed(pack_steps(each.steps));
  }
  return taken;
}

void ControlChannel::set_limits(const ControlLimits& limits) {
  {
    const std::lock_guard lock(*monitor_);
    limits_ = limits;
  }
  wake();
}

ControlLimits ControlChannel::limits() const {
  const std::lock_guard lock(*monitor_);
  return limits_;
}

// From the coordinator.

void ControlChannel::welcome(const control::Welcome& welcome) {
  const std::lock_guard lock(*monitor_);
  welcome_ = welcome;
  clocks_compared_ = !welcome.compare_clocks();
  monitor_->notify_all();
}

void ControlChannel::clocks_compared() {
  const std::lock_guard lock(*monitor_);
  clocks_compared_ = true;
  monitor_->notify_all();
}

void ControlChannel::put(FromCoordinator answer) {
  const std::lock_guard lock(*monitor_);
  board_.put(std::move(answer));
  monitor_->notify_all();
}

void ControlChannel::set_wants_snapshots(bool wanted) {
  const std::lock_guard lock(*monitor_);
  wants_snapshots_ = wanted;
}

void ControlChannel::push_snapshot(WeightsSnapshot snapshot) {
  const std::lock_guard lock(*monitor_);
  snapshots_.push_back(std::move(snapshot));
  monitor_->notify_all();
}

void ControlChannel::begin_membership(const MembershipEpoch& membership) {
  Lock lock(*monitor_);
  if (!board_.proclaim(membership)) return;
  lost_workers_.clear();
  monitor_->notify_all();
  if (board_.is_superseded()) call_each(lock, regroup_);
}

void ControlChannel::lose_worker(int rank) {
  Lock lock(*monitor_);
  lost_workers_.push_back(rank);
  call_each(lock, worker_lost_, rank);
}

void ControlChannel::order_checkpoint(std::int64_t membership_epoch, std::int64_t step) {
  Lock lock(*monitor_);
  call_each(lock, checkpoint_order_, membership_epoch, step);
}

void ControlChannel::stop() {
  Lock lock(*monitor_);
  if (!board_.stop()) return;
  monitor_->notify_all();
  call_each(lock, stop_);
}

// Waits.

template <typename Condition>
void ControlChannel::wait(Lock&, const Condition& condition) {
  while (!condition()) monitor_->wait();
}

template <typename Condition>
void ControlChannel::wait_until(Lock&, TimePoint deadline, const Condition& condition) {
  PatientWait wait(*patience_, deadline, clock_.now());
  while (const std::optional<TimePoint> next = wait.next(clock_.now())) {
    while (!condition() && clock_.now() < *next) monitor_->wait_until(*next);
    if (condition()) return;
  }
}

Result<control::Welcome> ControlChannel::wait_for_welcome(TimePoint deadline) {
  Lock lock(*monitor_);
  const auto is_in = [&] { return welcome_ && clocks_compared_; };
  while (!is_in() && !board_.is_stopped() && clock_.now() < deadline) monitor_->wait_until(deadline);
  if (is_in()) return *welcome_;
  if (board_.is_stopped()) return Status::cancelled("told to stop");
  return Status::deadline_exceeded("the coordinator does not answer");
}

Result<FromCoordinator> ControlChannel::wait_for(const ToCoordinator& question, TimePoint deadline) {
  Lock lock(*monitor_);
  std::optional<Result<FromCoordinator>> outcome = board_.outcome_of(question);
  if (!outcome) wait_until(lock, deadline, [&] { return (outcome = board_.outcome_of(question)).has_value(); });
  return outcome ? *std::move(outcome) : board_.not_answered(question);
}

Result<MembershipEpoch> ControlChannel::join(std::int64_t after, TimePoint deadline) {
  Lock lock(*monitor_);
  wait_until(lock, deadline, [&] { return board_.is_stopped() || board_.knows_membership(after); });
  return board_.join(after);
}

Result<WeightsSnapshot> ControlChannel::next_snapshot() {
  Lock lock(*monitor_);
  wait(lock, [&] { return board_.is_stopped() || !snapshots_.empty(); });
  if (snapshots_.empty()) return Status::cancelled("no more snapshots");
  WeightsSnapshot snapshot = std::move(snapshots_.front());
  snapshots_.pop_front();
  return snapshot;
}

// What is known now.

std::optional<FromCoordinator> ControlChannel::take(const ToCoordinator& question) {
  const std::lock_guard lock(*monitor_);
  return board_.take(question);
}

bool ControlChannel::wants_snapshots() const {
  const std::lock_guard lock(*monitor_);
  return wants_snapshots_;
}

bool ControlChannel::knows_membership(std::int64_t after) const {
  const std::lock_guard lock(*monitor_);
  return board_.knows_membership(after);
}

std::int64_t ControlChannel::joined() const {
  const std::lock_guard lock(*monitor_);
  return board_.joined();
}

bool ControlChannel::is_superseded() const {
  const std::lock_guard lock(*monitor_);
  return board_.is_superseded();
}

bool ControlChannel::is_off() const {
  const std::lock_guard lock(*monitor_);
  return board_.is_stopped() || board_.is_superseded();
}

// Callbacks.

template <typename Function>
Subscription ControlChannel::add_callback(Callbacks<Function>& callbacks, std::function<Function> callback) {
  const std::int64_t number = ++registered_;
  callbacks.emplace(number, std::move(callback));
  return Subscription([this, &callbacks, number] {
    Lock lock(*monitor_);
    callbacks.erase(number);
    wait(lock, [&] { return !callback_runs_; });
  });
}

template <typename Call>
void ControlChannel::run(Lock& lock, const Call& call) {
  wait(lock, [&] { return !callback_runs_; });
  struct Running {
    Running(ControlChannel& its_channel, Lock& its_lock) : channel(its_channel), lock(its_lock) {
      channel.callback_runs_ = true;
      lock.unlock();
    }
    ~Running() {
      lock.lock();
      channel.callback_runs_ = false;
      channel.monitor_->notify_all();
    }
    ControlChannel& channel;
    Lock& lock;
  } running(*this, lock);
  call();
}

template <typename Function, typename... Arguments>
void ControlChannel::call_each(Lock& lock, Callbacks<Function>& callbacks, Arguments... arguments) {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, callback] : callbacks) numbers.push_back(number);
  for (const std::int64_t number : numbers) {
    wait(lock, [&] { return !callback_runs_; });
    const auto found = callbacks.find(number);
    if (found == callbacks.end()) continue;
    run(lock, [callback = found->second, &arguments...] { callback(arguments...); });
  }
}

Subscription ControlChannel::on_stop(std::function<void()> callback) {
  Lock lock(*monitor_);
  if (!board_.is_stopped()) return add_callback(stop_, std::move(callback));
  run(lock, callback);
  return {};
}

Subscription ControlChannel::on_worker_lost(std::function<void(int)> callback) {
  Subscription subscription;
  Lock lock(*monitor_);
  const std::vector<int> lost = lost_workers_;
  subscription = add_callback(worker_lost_, callback);
  for (const int rank : lost) run(lock, [&] { callback(rank); });
  return subscription;
}

Subscription ControlChannel::on_regroup(std::function<void()> callback) {
  Subscription subscription;
  Lock lock(*monitor_);
  const bool is_superseded = board_.is_superseded();
  subscription = add_callback(regroup_, callback);
  if (is_superseded) run(lock, callback);
  return subscription;
}

Subscription ControlChannel::on_checkpoint_order(std::function<void(std::int64_t, std::int64_t)> callback) {
  const std::lock_guard lock(*monitor_);
  return add_callback(checkpoint_order_, std::move(callback));
}

Subscription ControlChannel::on_heartbeat(std::function<allreduce::CollectiveState()> state) {
  const std::lock_guard lock(*monitor_);
  return add_callback(collective_state_, std::move(state));
}

std::optional<allreduce::CollectiveState> ControlChannel::collective_state() {
  Lock lock(*monitor_);
  wait(lock, [&] { return !callback_runs_; });
  if (collective_state_.empty()) return std::nullopt;
  std::optional<allreduce::CollectiveState> state;
  run(lock, [&state, callback = collective_state_.rbegin()->second] { state = callback(); });
  return state;
}

}  // namespace syncopate::experiments

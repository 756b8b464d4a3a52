#include "experiments/cluster/faults/fault_trigger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/hash.h"
#include "experiments/config/fault_text.h"

namespace syncopate::experiments {

FaultTrigger::FaultTrigger(DrawnFaults faults, std::uint64_t seed) : random_(seed, hash_of("churn")) {
  for (Fault& fault : faults.faults) faults_.push_back({.fault = fault});
  for (const Duration mean : faults.churns) churns_.push_back({.mean = mean});
}

std::vector<std::int64_t> FaultTrigger::announced_steps(int worker) const {
  std::vector<std::int64_t> steps;
  for (const Due& due : faults_) {
    const FaultTarget& target = due.fault.target;
    const bool is_others = target.role == FaultRole::kWorker && target.rank != worker;
    if (due.fault.step && !due.done && !is_others) steps.push_back(*due.fault.step);
  }
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

void FaultTrigger::on_training_begins(TimePoint now) {
  begun_ = now;
  for (Churn& churn : churns_) churn.next = now + drawn_pause(churn);
}

void FaultTrigger::on_step_begins(int worker, std::int64_t step) {
  for (Due& due : faults_) {
    const FaultTarget& target = due.fault.target;
    const bool concerns = target.role != FaultRole::kWorker || target.rank == worker;
    due.reached |= concerns && due.fault.step && step >= *due.fault.step;
  }
}

bool FaultTrigger::is_due(const Due& due, TimePoint now) const {
  if (due.done) return false;
  return due.fault.step ? due.reached : begun_ != TimePoint::max() && now >= begun_ + due.fault.time;
}

std::vector<FaultAction> FaultTrigger::take_due(TimePoint now, std::span<const int> workers) {
  std::vector<FaultAction> actions;
  std::erase_if(stopped_, [&](const Stopped& stopped) {
    if (now < stopped.until) return false;
    actions.push_back(stopped.action);
    return true;
  });
  for (Due& due : faults_) {
    if (!is_due(due, now)) continue;
    due.done = true;
    act(due, now, actions);
  }
  for (Churn& churn : churns_) {
    if (now < churn.next) continue;
    strike(churn, workers, actions);
    churn.next = now + drawn_pause(churn);
  }
  return actions;
}

void FaultTrigger::act(const Due& due, TimePoint now, std::vector<FaultAction>& actions) {
  const Fault& fault = due.fault;
  FaultAction action{.kind = FaultAction::Kind::kKill,
                     .target = fault.target,
                     .length = fault.length,
                     .fault = fault.to_string(),
                     .step = fault.step};
  if (const std::optional<LinkFault> link_fault = link_fault_of(fault.kind)) {
    action.kind = FaultAction::Kind::kImpairLinks;
    action.link_fault = *link_fault;
  }
  if (fault.kind == FaultKind::kNan) action.kind = FaultAction::Kind::kPlantNan;
  if (fault.kind == FaultKind::kStop) {
    action.kind = FaultAction::Kind::kContinue;
    stopped_.push_back({now + fault.length, action});
    action.kind = FaultAction::Kind::kStop;
  }
  actions.push_back(std::move(action));
}

void FaultTrigger::strike(Churn& churn, std::span<const int> workers, std::vector<FaultAction>& actions) {
  // drawn even if no worker is killed, so that later draws do not depend on it
  const std::uint64_t drawn = random_.next();
  if (workers.size() < 2) return;
  const int worker = workers[drawn % workers.size()];
  churn.has_struck = true;
  actions.push_back({.kind = FaultAction::Kind::kKill,
                     .target = {FaultRole::kWorker, worker},
                     .fault = "churn:" + fault_time_text(churn.mean)});
}

Duration FaultTrigger::drawn_pause(const Churn& churn) {
  return from_seconds(-seconds(churn.mean) * std::log(1 - random_.uniform()));
}

TimePoint FaultTrigger::next() const {
  TimePoint next = TimePoint::max();
  for (const Stopped& stopped : stopped_) next = std::min(next, stopped.until);
  if (begun_ == TimePoint::max()) return next;
  for (const Due& due : faults_) {
    if (!due.done && !due.fault.step) next = std::min(next, begun_ + due.fault.time);
  }
  for (const Churn& churn : churns_) next = std::min(next, churn.next);
  return next;
}

std::vector<FaultAction> FaultTrigger::end() {
  std::vector<FaultAction> actions;
  for (Stopped& stopped : std::exchange(stopped_, {})) actions.push_back(std::move(stopped.action));
  return actions;
}

std::vector<Fault> FaultTrigger::not_come() const {
  std::vector<Fault> faults;
  for (const Due& due : faults_) {
    if (!due.done) faults.push_back(due.fault);
  }
  return faults;
}

std::vector<Duration> FaultTrigger::churns_in_vain() const {
  std::vector<Duration> means;
  for (const Churn& churn : churns_) {
    if (!churn.has_struck) means.push_back(churn.mean);
  }
  return means;
}

}  // namespace syncopate::experiments

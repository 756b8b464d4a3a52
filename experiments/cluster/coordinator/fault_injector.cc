#include "experiments/cluster/coordinator/fault_injector.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/text/format.h"
#include "experiments/cluster/control/wire_records.h"
#include "experiments/config/fault_text.h"
#include "experiments/config/rules/fault_rules.h"

namespace syncopate::experiments {
namespace {

// The process's name follows this text.
const char* done_to_links(LinkFault fault) {
  switch (fault) {
    case LinkFault::kCut:
      return "cut the links of";
    case LinkFault::kDelay:
      return "delayed messages from";
    case LinkFault::kDuplicate:
      return "duplicated the messages from";
    case LinkFault::kReorder:
      return "reordered messages from";
  }
  return "";
}

}  // namespace

FaultInjector::FaultInjector(const ResolvedRun& config, std::int64_t total_steps, const JobPlan& plan, Hands hands)
    : plan_(plan),
      hands_(std::move(hands)),
      trigger_(
          config.faults.empty() ? DrawnFaults() : config.faults.draw(config.seed, fault_scene_of(config, total_steps)),
          config.seed) {}

std::vector<std::int64_t> FaultInjector::announced_steps(std::size_t process) const {
  const ProcessSpec& spec = plan_.processes[process];
  return spec.role == Role::kWorker ? trigger_.announced_steps(spec.rank) : std::vector<std::int64_t>();
}

void FaultInjector::on_training_begins(TimePoint now) {
  begun_ = now;
  trigger_.on_training_begins(now);
}

void FaultInjector::on_step_begins(std::size_t process, std::int64_t step, TimePoint now) {
  if (plan_.processes[process].role != Role::kWorker) return;
  trigger_.on_step_begins(plan_.processes[process].rank, step);
  act(now);
}

void FaultInjector::act(TimePoint now) {
  if (ended_) return;
  for (const FaultAction& action : trigger_.take_due(now, workers_training())) carry_out(action, now);
}

void FaultInjector::end() {
  if (std::exchange(ended_, true)) return;
  for (const FaultAction& action : trigger_.end()) let_go(action);
  for (const Fault& fault : trigger_.not_come()) {
    records_.push_back({.fault = fault.to_string(), .outcome = why_not_due(fault)});
  }
  for (const Duration mean : trigger_.churns_in_vain()) {
    records_.push_back(
        {.fault = "churn:" + fault_time_text(mean), .outcome = "it struck nobody: " + training_length()});
  }
}

std::string FaultInjector::training_length() const {
  if (!begun_) return "training never began";
  return fmt::format("training lasted {}", format_duration(seconds(std::max(last_steps_, *begun_) - *begun_)));
}

std::string FaultInjector::why_not_due(const Fault& fault) const {
  if (!fault.step || !begun_) return "it was never due: " + training_length();
  if (fault.target.role == FaultRole::kWorker && fault.target.rank) {
    const auto found = steps_done_.find(*fault.target.rank);
    return fmt::format("it was never due: {} made {} steps", fault.target.name(),
                       found == steps_done_.end() ? 0 : found->second);
  }
  std::int64_t most = 0;
  for (const auto& [rank, steps] : steps_done_) most = std::max(most, steps);
  return fmt::format("it was never due: no worker made more than {} steps", most);
}

void FaultInjector::on_steps(std::size_t process, std::int64_t steps_done, TimePoint now) {
  std::int64_t& known = steps_done_[plan_.processes[process].rank];
  known = std::max(known, steps_done);
  last_steps_ = now;
}

std::vector<FaultRecord> FaultInjector::records() const { return records_; }

std::optional<std::size_t> FaultInjector::process_of(const FaultTarget& target) const {
  for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
    const ProcessSpec& spec = plan_.processes[i];
    if (std::string_view(name_of(spec.role)) == name_of(target.role) && spec.rank == target.rank) return i;
  }
  return std::nullopt;
}

std::vector<int> FaultInjector::workers_training() {
  std::erase_if(killed_, [&](std::size_t process) { return !hands_.trains(process); });
  std::vector<int> ranks;
  for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
    const bool trains = plan_.processes[i].role == Role::kWorker && hands_.trains(i) && !killed_.contains(i);
    if (trains) ranks.push_back(plan_.processes[i].rank);
  }
  return ranks;
}

void FaultInjector::carry_out(const FaultAction& action, TimePoint now) {
  if (action.kind == FaultAction::Kind::kContinue) return let_go(action);
  const std::optional<std::string> done = inject(action);
  FaultRecord record{.fault = action.fault, .outcome = done.value_or(action.target.name() + " is not there")};
  record.step = action.step;
  if (done) record.at = now;
  if (begun_) record.training_seconds = seconds(now - *begun_);
  records_.push_back(record);
  const std::string when = action.step
                               ? fmt::format(" at step {}", *action.step)
                               : fmt::format(", {:.2f} s after training began", records_.back().training_seconds);
  hands_.report(fmt::format("fault: {}{}", record.outcome, when));
}

void FaultInjector::let_go(const FaultAction& action) {
  if (const std::optional<std::size_t> process = process_of(action.target)) hands_.signal(*process, SIGCONT);
}

std::optional<std::string> FaultInjector::inject(const FaultAction& action) {
  const std::optional<std::size_t> process = process_of(action.target);
  if (!process || !hands_.still_there(*process)) return std::nullopt;
  const std::string name = action.target.name();
  if (action.kind == FaultAction::Kind::kImpairLinks) {
    hands_.impair_links(*process, action.link_fault, action.length);
    return fmt::format("{} {} for {:.6g} s", done_to_links(action.link_fault), name, seconds(action.length));
  }
  if (action.kind == FaultAction::Kind::kPlantNan) {
    planted_.insert(*process);
    return "planted a NaN in the gradient of " + name;
  }
  const bool kills = action.kind == FaultAction::Kind::kKill;
  const std::optional<pid_t> pid = hands_.signal(*process, kills ? SIGKILL : SIGSTOP);
  if (!pid) return std::nullopt;
  if (kills) killed_.insert(*process);
  const ProcessSpec& spec = plan_.processes[*process];
  const std::string whom = *pid != 0     ? fmt::format("{} (pid {})", name, *pid)
                           : spec.remote ? fmt::format("{} (host {})", name, spec.host)
                                         : name;
  return kills ? "killed " + whom : fmt::format("stopped {} for {:.6g} s", whom, seconds(action.length));
}

FaultInjector::Hands hands_on(ClusterRuntime& runtime, const RunMonitor& monitor, RunObserver& observer) {
  return {.still_there = [&monitor](std::size_t process) { return monitor.still_there(process); },
          .trains = [&monitor](std::size_t process) { return monitor.trains(process); },
          .signal = [&runtime](std::size_t process, int signal) { return runtime.signal_process(process, signal); },
          .impair_links =
              [&runtime](std::size_t process, LinkFault fault, Duration length) {
                control::FromCoordinator message;
                message.mutable_impair_links()->set_fault(to_wire(fault));
                message.mutable_impair_links()->set_length(length.count());
                runtime.control().send(process, message);
              },
          .report =
              [&observer](const std::string& line) {
                observer.on_fault();
                observer.on_report(line);
              }};
}

}  // namespace syncopate::experiments

#include "experiments/cluster/coordinator/process_roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate::experiments {
namespace {

// Returns whether nothing more is waited for: it has finished, has ended or is lost.
bool is_done(ProcessPhase phase) {
  return phase == ProcessPhase::kFinished || phase == ProcessPhase::kEnded || is_lost(phase);
}

}  // namespace

ProcessRoster::ProcessRoster(const JobPlan& plan, TimePoint now) : plan_(plan), entries_(plan.processes.size()) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].last_heard = now;
    entries_[i].host = plan.processes[i].host;
  }
}

ProcessPhase ProcessRoster::apply(std::size_t process, ProcessEvent event) {
  ProcessPhase& phase = entries_[process].phase;
  return std::exchange(phase, kProcessTransitions.next(phase, event));
}

void ProcessRoster::on_step(std::size_t worker, std::int64_t membership) {
  apply(worker, ProcessEvent::kStep);
  entries_[worker].stepped_in = membership;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (serves(plan_.processes[i].role)) apply(i, ProcessEvent::kStep);
  }
}

void ProcessRoster::on_training_begins() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!is_evaluator(i)) apply(i, ProcessEvent::kTrainingBegins);
  }
}

void ProcessRoster::on_epoch_begins() {
  for (std::size_t i = 0; i < entries_.size(); ++i) apply(i, ProcessEvent::kEpochBegins);
}

void ProcessRoster::on_hello(std::size_t process, std::int64_t pid, const std::string& host) {
  apply(process, ProcessEvent::kHello);
  entries_[process].pid = pid;
  entries_[process].host = host;
}

void ProcessRoster::on_report(std::size_t process, const std::string& operation, std::int64_t step) {
  entries_[process].operation = operation;
  entries_[process].step = step;
}

void ProcessRoster::plan_restart(std::size_t process, TimePoint at) {
  apply(process, ProcessEvent::kRestartPlanned);
  entries_[process].restart_at = at;
  entries_[process].restart_pause.reset();
}

void ProcessRoster::on_restart(std::size_t process, TimePoint now) {
  apply(process, ProcessEvent::kRestart);
  Entry& self = entries_[process];
  self = {.phase = self.phase, .restarts = self.restarts + 1, .host = self.host, .last_heard = now};
}

void ProcessRoster::on_admitted(std::size_t process) {
  apply(process, ProcessEvent::kAdmitted);
  entries_[process].restarts = 0;
}

void ProcessRoster::forgive(Duration absence, TimePoint now) {
  for (Entry& entry : entries_) entry.last_heard = std::min(now, entry.last_heard + absence);
}

bool ProcessRoster::all_have_ended() const {
  return std::ranges::all_of(entries_, [](const Entry& entry) { return has_ended(entry.phase); });
}

bool ProcessRoster::any_awaits_restart() const {
  return std::ranges::count(entries_, ProcessPhase::kAwaitingRestart, &Entry::phase) > 0;
}

bool ProcessRoster::all_are_ready_to_train() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && still_there(i) && phase(i) != ProcessPhase::kReady) return false;
  }
  return true;
}

bool ProcessRoster::all_are_leaving() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && still_there(i) && phase(i) < ProcessPhase::kLeaving) return false;
  }
  return chief().has_value();
}

bool ProcessRoster::all_workers_are_done() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && !is_done(phase(i))) return false;
  }
  return true;
}

bool ProcessRoster::all_servers_are_done() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (serves(plan_.processes[i].role) && !is_done(phase(i))) return false;
  }
  return true;
}

int ProcessRoster::live_workers() const {
  int count = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && (still_there(i) || phase(i) == ProcessPhase::kFinished)) ++count;
  }
  return count;
}

std::optional<std::size_t> ProcessRoster::chief() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && still_there(i)) return i;  // the plan lists workers by rank
  }
  return std::nullopt;
}

std::int64_t ProcessRoster::furthest_step() const {
  std::int64_t step = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i)) step = std::max(step, entries_[i].step);
  }
  return step;
}

bool ProcessRoster::no_worker_trains() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && trains(i)) return false;
  }
  return true;
}

bool ProcessRoster::all_have_stepped_in(std::int64_t membership) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && still_there(i) && entries_[i].stepped_in != membership) return false;
  }
  return true;
}

bool ProcessRoster::any_replica_has_finished() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const bool has_finished = phase(i) == ProcessPhase::kFinished || phase(i) == ProcessPhase::kEnded;
    if (serves(plan_.processes[i].role) && has_finished) return true;
  }
  return false;
}

bool ProcessRoster::other_replica_is_empty(std::size_t process) const {
  const ProcessSpec& spec = plan_.processes[process];
  if (!serves(spec.role)) return false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ProcessSpec& other = plan_.processes[i];
    if (i != process && serves(other.role) && other.rank == spec.rank && still_there(i)) return !trains(i);
  }
  return false;
}

std::string ProcessRoster::describe(std::size_t process, TimePoint now) const {
  const Entry& self = entries_[process];
  std::string name = plan_.processes[process].name();
  if (const auto whole = plan_.processes[process].within) {
    name += " in the process of " + plan_.processes[*whole].name();
  }
  for (const std::size_t member : members_within(plan_, process)) {
    name += fmt::format(", with {} in its process", plan_.processes[member].name());
  }
  if (!self.pid) return fmt::format("{} (host {})", name, self.host);
  const std::string pid = *self.pid == 0 ? "" : fmt::format(", pid {}", *self.pid);
  const std::string step = serves(plan_.processes[process].role) ? "" : fmt::format(" at step {}", self.step);
  return fmt::format("{} (host {}{}; {}{}, last heard {:.1f} s ago)", name, self.host, pid, self.operation, step,
                     seconds(now - self.last_heard));
}

}  // namespace syncopate::experiments

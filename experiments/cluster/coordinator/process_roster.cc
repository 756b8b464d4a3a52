#include "experiments/cluster/coordinator/process_roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::experiments {

ProcessRoster::ProcessRoster(const JobPlan& plan, TimePoint now) : plan_(plan), entries_(plan.processes.size()) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].last_heard = now;
    entries_[i].host = plan.processes[i].host;
  }
}

void ProcessRoster::expect_again(std::size_t process, TimePoint now) {
  Entry& self = entries_[process];
  self = {.state = State::kExpected, .lost = true, .starts = self.starts + 1, .host = self.host, .last_heard = now};
}

void ProcessRoster::forgive(Duration absence, TimePoint now) {
  for (Entry& entry : entries_) entry.last_heard = std::min(now, entry.last_heard + absence);
}

void ProcessRoster::note_homes_train() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (serves(plan_.processes[i].role) && still_there(i)) entries_[i].trains = true;
  }
}

bool ProcessRoster::still_there(std::size_t process) const {
  const Entry& self = entries_[process];
  return !self.lost && self.state <= State::kRunning;
}

bool ProcessRoster::all_have_ended() const {
  return std::ranges::all_of(entries_, [](const Entry& entry) { return entry.state == State::kEnded; });
}

bool ProcessRoster::all_are_ready_to_train() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && still_there(i) && !entries_[i].ready_to_train) return false;
  }
  return true;
}

bool ProcessRoster::all_are_leaving() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && still_there(i) && !entries_[i].is_leaving) return false;
  }
  return chief().has_value();
}

int ProcessRoster::live_workers() const {
  int count = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& self = entries_[i];
    if (is_worker(i) && !self.lost && self.state != State::kFailed && self.state != State::kEnded) ++count;
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

bool ProcessRoster::all_have_stepped_in(std::int64_t generation) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_worker(i) && still_there(i) && entries_[i].stepped_in != generation) return false;
  }
  return true;
}

bool ProcessRoster::any_home_has_finished() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const State state = entries_[i].state;
    const bool is_done = state == State::kFinished || state == State::kEnded;
    if (serves(plan_.processes[i].role) && is_done && !entries_[i].lost) return true;
  }
  return false;
}

bool ProcessRoster::other_home_is_empty(std::size_t process) const {
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
  const std::string name = plan_.processes[process].name();
  if (self.pid == 0) return fmt::format("{} (host {})", name, self.host);
  return fmt::format("{} (host {}, pid {}; {} at step {}, last heard {:.1f} s ago)", name, self.host, self.pid,
                     self.operation, self.step, seconds(now - self.last_heard));
}

}  // namespace syncopate::experiments

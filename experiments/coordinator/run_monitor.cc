#include "experiments/coordinator/run_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace syncopate::experiments {
namespace {

// A report that may have a deeper cause is kept for so long before it becomes the verdict; so is the end of a process
// that has not said why.
constexpr Duration kExplanationTime = std::chrono::milliseconds(1500);
// Processes that were asked to stop have so long before they are killed.
constexpr Duration kStopPatience = std::chrono::seconds(5);

ExitCode exit_code_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return ExitCode::kUsage;
    case Code::kNotFound:
    case Code::kDataLoss:
      return ExitCode::kData;
    case Code::kResourceExhausted:
      return ExitCode::kOutput;
    case Code::kDeadlineExceeded:
      return ExitCode::kTimeout;
    case Code::kPeerLost:
      return ExitCode::kProcessLost;
    case Code::kCancelled:
      return ExitCode::kInterrupted;
    case Code::kOk:
    case Code::kInternal:
      return ExitCode::kInternal;
  }
  return ExitCode::kInternal;
}

std::string describe_end(const ProcessEnd& end) {
  if (end.signal) return fmt::format("was killed by signal {} ({})", *end.signal, strsignal(*end.signal));
  if (end.exit_code) return fmt::format("ended with exit code {}", *end.exit_code);
  return "is gone";
}

}  // namespace

RunMonitor::RunMonitor(const JobPlan& plan, const Options& options, TimePoint now)
    : plan_(plan), options_(options), processes_(plan.processes.size()) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    processes_[i].last_heard = now;
    processes_[i].host = plan.processes[i].host;
  }
}

void RunMonitor::on_hello(std::size_t process, std::int64_t pid, const std::string& host, TimePoint now) {
  Process& self = processes_[process];
  self.pid = pid;
  self.host = host;
  if (self.state == State::kExpected) self.state = State::kRunning;
  on_heard(process, now);
}

void RunMonitor::on_heard(std::size_t process, TimePoint now) { processes_[process].last_heard = now; }

void RunMonitor::on_heartbeat(std::size_t process, const std::string& operation, std::int64_t step, TimePoint now) {
  processes_[process].operation = operation;
  processes_[process].step = step;
  on_heard(process, now);
}

void RunMonitor::on_ready_to_train(std::size_t process, TimePoint now) {
  processes_[process].ready_to_train = true;
  on_heard(process, now);
  release_training_if_all_ready();
}

void RunMonitor::release_training_if_all_ready() {
  if (training_released_ || stopping_) return;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (is_worker(i) && still_there(i) && !processes_[i].ready_to_train) return;
  }
  training_released_ = true;
  actions_.push_back({MonitorAction::Kind::kReleaseTraining});
}

void RunMonitor::on_evaluation(TimePoint now) {
  --evaluations_due_;
  if (end_by_) end_by_ = now + options_.timeout;
  stop_if_all_done(now);
}

void RunMonitor::on_finished(std::size_t process, TimePoint now) {
  on_heard(process, now);
  Process& self = processes_[process];
  if (self.state != State::kEnded) self.state = State::kFinished;
  self.unexplained_end.reset();
  stop_if_all_done(now);
}

void RunMonitor::stop_if_all_done(TimePoint now) {
  if (stopping_) return;
  bool workers_done = true, servers_done = true;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const Process& self = processes_[i];
    const bool done = (self.state >= State::kFinished && !self.unexplained_end) || self.lost;
    if (plan_.processes[i].role == Role::kWorker) workers_done &= done;
    if (plan_.processes[i].role == Role::kServer) servers_done &= done;
  }
  if (!workers_done) return;
  if (!end_by_) end_by_ = now + options_.timeout;
  if (servers_done && evaluations_due_ <= 0) begin_stopping("", now);
}

void RunMonitor::on_failure(std::size_t process, const Status& status, const std::string& operation, std::int64_t step,
                            TimePoint now) {
  on_heartbeat(process, operation, step, now);
  Process& self = processes_[process];
  if (self.state != State::kEnded) self.state = State::kFailed;
  self.unexplained_end.reset();
  if (stopping_ || verdict_) return;
  const Verdict verdict{exit_code_of(status.code()), fmt::format("{}: {}", describe(process, now), status.message())};
  const bool may_have_a_cause = status.code() == Code::kPeerLost || status.code() == Code::kDeadlineExceeded;
  if (!may_have_a_cause) return conclude(verdict, now);
  if (!suspicion_) suspicion_ = Suspicion{verdict, now + kExplanationTime};
}

void RunMonitor::on_end(std::size_t process, const ProcessEnd& end, TimePoint now) {
  Process& self = processes_[process];
  const State before = self.state;
  self.state = State::kEnded;
  if (stopping_ || self.lost) return;
  const bool in_order = before == State::kFinished && end.exit_code.value_or(0) == 0 && !end.signal;
  // A process that has reported its failure ends for that reason: the report speaks for it.
  if (in_order || before == State::kFailed) return;
  if (end.signal || before == State::kFinished) return lose(process, ExitCode::kProcessLost, describe_end(end), now);
  self.unexplained_end = end;
  self.explain_by = now + kExplanationTime;
}

void RunMonitor::lose_unexplained(TimePoint now) {
  const bool suspicion_is_due = suspicion_ && now >= suspicion_->until;
  for (std::size_t i = 0; i < processes_.size() && !stopping_; ++i) {
    Process& self = processes_[i];
    if (!self.unexplained_end || (now < self.explain_by && !suspicion_is_due)) continue;
    lose(i, ExitCode::kProcessLost, describe_end(*std::exchange(self.unexplained_end, std::nullopt)), now);
  }
}

void RunMonitor::on_carrier_end(int exit_code, const std::string& carrier, const std::string& last_words,
                                TimePoint now) {
  // Whoever has not ended yet has died with it, or never lived.
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i].state == State::kExpected) processes_[i].state = State::kEnded;
  }
  if (stopping_ || verdict_ || exit_code == 0) return;
  Verdict verdict{ExitCode::kProcessLost,
                  fmt::format("{} ended with exit code {}: {}", carrier, exit_code, last_words)};
  if (!suspicion_) suspicion_ = Suspicion{std::move(verdict), now + kExplanationTime};
}

void RunMonitor::on_output_failure(const Status& status, TimePoint now) {
  if (!stopping_ && !verdict_) conclude({ExitCode::kOutput, status.message()}, now);
}

void RunMonitor::on_interrupt(TimePoint now) {
  if (stopping_) {
    kill_at_ = now;  // asked twice
    return;
  }
  std::int64_t step = 0;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (is_worker(i)) step = std::max(step, processes_[i].step);
  }
  conclude({ExitCode::kInterrupted, fmt::format("interrupted at step {}; what was recorded is kept", step)}, now);
}

void RunMonitor::on_tick(TimePoint now) {
  if (stopping_) {
    if (now < kill_at_ || killed_all_) return;
    killed_all_ = true;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i].state != State::kEnded) actions_.push_back({MonitorAction::Kind::kKill, i});
    }
    return;
  }
  // Silence is noticed well before those who wait for the silent one pass their own deadlines.
  const Duration patience = options_.timeout / 2;
  for (std::size_t i = 0; i < processes_.size() && !stopping_; ++i) {
    const Process& self = processes_[i];
    const bool starting = self.state == State::kExpected;
    if (self.lost || (!starting && self.state != State::kRunning)) continue;
    const Duration limit = starting ? options_.timeout : patience;
    if (now - self.last_heard < limit) continue;
    const std::string how = starting ? "has not said hello" : "has stopped answering";
    actions_.push_back({MonitorAction::Kind::kKill, i});
    lose(i, ExitCode::kTimeout, how, now);
  }
  lose_unexplained(now);
  if (stopping_) return;
  if (suspicion_ && now >= suspicion_->until) return conclude(suspicion_->verdict, now);
  if (end_by_ && now >= *end_by_) {
    conclude({ExitCode::kTimeout, fmt::format("all workers have finished, but not everybody else within {:.0f} s",
                                              seconds(options_.timeout))},
             now);
  }
}

void RunMonitor::lose(std::size_t process, ExitCode code, const std::string& how, TimePoint now) {
  const std::string line = fmt::format("{} {}", describe(process, now), how);
  Process& self = processes_[process];
  self.lost = true;
  const bool others_live = is_worker(process) && live_workers() > 0;
  if (!others_live || !options_.survives_worker_loss) {
    return conclude({code, line + (others_live ? "; this mode needs every worker" : "")}, now);
  }
  actions_.push_back(
      {MonitorAction::Kind::kReport, process, 0, fmt::format("{}; {} workers go on", line, live_workers())});
  actions_.push_back({MonitorAction::Kind::kWorkerLost, process, plan_.processes[process].rank, {}});
  release_training_if_all_ready();
  stop_if_all_done(now);
}

void RunMonitor::conclude(Verdict verdict, TimePoint now) {
  verdict_ = std::move(verdict);
  begin_stopping(verdict_->line, now);
}

void RunMonitor::begin_stopping(const std::string& reason, TimePoint now) {
  stopping_ = true;
  kill_at_ = now + std::min(kStopPatience, options_.timeout);
  actions_.push_back({MonitorAction::Kind::kStopAll, 0, 0, reason});
}

std::vector<MonitorAction> RunMonitor::take_actions() { return std::exchange(actions_, {}); }

bool RunMonitor::over() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& p) { return p.state == State::kEnded; });
}

std::optional<std::size_t> RunMonitor::chief() const {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (is_worker(i) && still_there(i)) return i;  // workers stand in the plan by rank
  }
  return std::nullopt;
}

bool RunMonitor::still_there(std::size_t process) const {
  const Process& self = processes_[process];
  return !self.lost && self.state <= State::kRunning;
}

int RunMonitor::live_workers() const {
  int count = 0;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const Process& self = processes_[i];
    if (is_worker(i) && !self.lost && self.state != State::kFailed && self.state != State::kEnded) ++count;
  }
  return count;
}

std::string RunMonitor::describe(std::size_t process, TimePoint now) const {
  const Process& self = processes_[process];
  return fmt::format("{} (host {}, pid {}; {} at step {}, last heard {:.1f} s ago)", plan_.processes[process].name(),
                     self.host, self.pid, self.operation, self.step, seconds(now - self.last_heard));
}

}  // namespace syncopate::experiments

#include "experiments/cluster/coordinator/run_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate::experiments {
namespace {

// How long processes that were asked to stop have before they are killed.
constexpr Duration kStopPatience = std::chrono::seconds(5);

std::string back_text(const std::string& name, std::int64_t pid) {
  return name + " is back" + (pid == 0 ? "" : fmt::format(" (pid {})", pid));
}

}  // namespace

RunMonitor::RunMonitor(const JobPlan& plan, const Options& options, TimePoint now)
    : plan_(plan),
      options_(options),
      roster_(plan, now),
      diagnosis_(plan, roster_, options.timeout, options.stalls, now),
      recovery_(plan, roster_, options.recovery, options.resume),
      evaluator_(options.evaluation_backlog, count_of(plan, Role::kEvaluator) > 0, options.has_target) {}

// What processes say.

void RunMonitor::on_hello(std::size_t process, std::int64_t pid, const std::string& host, TimePoint now) {
  roster_.on_hello(process, pid, host);
  on_heard(process, now);
  if (!roster_.is_evaluator(process) || roster_.phase(process) != ProcessPhase::kRejoining || !evaluates()) return;
  roster_.on_admitted(process);  // it needs nothing from others to take part
  act(ReportLine{back_text(plan_.processes[process].name(), pid)});
}

void RunMonitor::on_heartbeat(std::size_t process, const std::string& operation, std::int64_t step,
                              const std::optional<CollectiveReport>& collective, TimePoint now) {
  note(process, operation, step, now);
  if (roster_.is_worker(process) && still_there(process)) diagnosis_.on_heartbeat(process, collective, now);
}

void RunMonitor::note(std::size_t process, const std::string& operation, std::int64_t step, TimePoint now) {
  roster_.on_report(process, operation, step);
  on_heard(process, now);
}

void RunMonitor::on_ready_to_train(std::size_t process, TimePoint now) {
  roster_.apply(process, ProcessEvent::kReady);
  on_heard(process, now);
  release_training_if_all_ready();
}

void RunMonitor::on_join_request(std::size_t process, TimePoint now) {
  on_heard(process, now);
  const ProcessPhase phase = roster_.phase(process);
  // Who is not lost is told its membership epoch by the caller, or will be if there is another one.
  if (!is_open(phase_) || (phase != ProcessPhase::kRejoining && phase != ProcessPhase::kLost)) return;
  roster_.on_admitted(process);
  recovery_.on_admitted(process);
  act(ReportLine{back_text(plan_.processes[process].name(), roster_[process].pid.value_or(0))});
  if (roster_.is_worker(process)) {
    act(AddWorker{plan_.processes[process].rank});
    diagnosis_.forget_stalls(process);
  }
  if (!recovery_.awaits_server()) begin_epoch(now);
}

void RunMonitor::on_step_finished(std::size_t process, std::int64_t number, std::int64_t steps_done) {
  steps_on_record_ = std::max(steps_on_record_, steps_done);
  if (number != membership().number) return;
  roster_.on_step(process, number);
  recovery_.on_step();
}

void RunMonitor::on_leaving(std::size_t process) {
  roster_.apply(process, ProcessEvent::kLastStep);
  enter(RunEvent::kLastStep);
}

void RunMonitor::on_training_over(std::size_t process, TimePoint now) {
  roster_.apply(process, ProcessEvent::kFinalWeights);
  const RunPhase before = phase_;
  enter(RunEvent::kFinalWeights);
  if (training_is_over(before)) return;
  if (training_has_begun(before)) {
    // One that leaves has connected: those who still leave, too, wait for it, although no step of it is known yet.
    give_up_workers(
        [](ProcessPhase phase) { return !has_trained(phase) && phase != ProcessPhase::kLeavingWithoutStep; });
  }
  if (before == RunPhase::kRestoring) {
    give_up_workers([](ProcessPhase phase) { return phase != ProcessPhase::kHasFinalWeights; });
  }
  stop_if_all_done(now);
}

void RunMonitor::on_trouble(std::size_t process, std::int64_t number, const Status& status,
                            const std::string& operation, std::int64_t step, TimePoint now) {
  note(process, operation, step, now);
  if (stopping() || number != membership().number || is_lost(roster_.phase(process))) return;
  diagnosis_.on_trouble(process, status, now);
}

void RunMonitor::on_missing(std::size_t process, std::int64_t number, int rank, Duration waited, TimePoint now) {
  if (stopping() || number != membership().number) return;
  if (const std::optional<Finding> finding = diagnosis_.on_missing(process, rank, waited, now)) respond(*finding, now);
}

bool RunMonitor::on_evaluation(std::int64_t point, bool final, TimePoint now) {
  const bool was_waited_for = evaluator_.on_evaluation(point, final);
  if (phase_ == RunPhase::kDraining && was_waited_for) diagnosis_.await_the_rest(now);
  stop_if_all_done(now);
  return was_waited_for;
}

void RunMonitor::on_finished(std::size_t process, TimePoint now) {
  on_heard(process, now);
  const ProcessPhase before = roster_.apply(process, ProcessEvent::kFinished);
  if (!has_ended(before)) stop_if_all_done(now);  // else too late: its end has been judged
}

void RunMonitor::on_failure(std::size_t process, const Status& status, const std::string& operation, std::int64_t step,
                            TimePoint now) {
  note(process, operation, step, now);
  const ProcessPhase before = roster_.apply(process, ProcessEvent::kFailure);
  if (stopping() || has_ended(before) || is_lost(before)) return;
  const std::optional<Finding> finding = diagnosis_.on_failure(process, status, training_has_begun(phase_), now);
  if (finding) respond(*finding, now);
}

// What becomes of processes.

void RunMonitor::on_end(std::size_t process, const ProcessEnd& end, TimePoint now) {
  const ProcessPhase before = roster_.apply(process, ProcessEvent::kExit);
  if (stopping()) return;
  if (roster_.is_evaluator(process)) {
    if (const std::optional<Duration> pause = roster_[process].restart_pause) {
      return roster_.plan_restart(process, now + *pause);  // its loss has been reported
    }
    if (!evaluates()) return;
  } else if (is_lost(before)) {
    return plan_restart(process, now);
  }
  if (const std::optional<Finding> finding = diagnosis_.on_exit(process, before, end, now)) respond(*finding, now);
}

void RunMonitor::on_carrier_end(const std::vector<std::size_t>& carried, const ProcessEnd& end,
                                const std::string& carrier, const std::string& last_words, TimePoint now) {
  bool all_had_finished = true;
  for (const std::size_t process : carried) {
    const ProcessPhase before = roster_.phase(process);
    const bool never_started = before == ProcessPhase::kStarting || before == ProcessPhase::kRestarting ||
                               (before == ProcessPhase::kLost && !roster_[process].pid);
    // The end of other processes here is detected directly.
    if (has_ended(before) || (!never_started && !plan_.processes[process].remote)) continue;
    roster_.apply(process, ProcessEvent::kExit);  // it has died with its carrier, or was never started
    all_had_finished &=
        before == ProcessPhase::kFinished || before == ProcessPhase::kFailed || before == ProcessPhase::kLostExiting;
  }
  if (stopping()) return;
  const std::optional<Finding> finding = diagnosis_.on_carrier_end(all_had_finished, end, carrier, last_words, now);
  if (finding) respond(*finding, now);
}

void RunMonitor::on_output_failure(const Status& status, TimePoint now) {
  if (!stopping()) conclude({ExitCode::kOutput, status.message()}, now);
}

void RunMonitor::on_interrupt(TimePoint now) {
  if (stopping()) {
    kill_at_ = now;  // asked twice
    return;
  }
  conclude({ExitCode::kInterrupted, interrupted_text()}, now);
}

// Heartbeats say less often where a worker is, and before its first one nothing.
std::string RunMonitor::interrupted_text() const {
  return fmt::format("interrupted at step {}; what was recorded is kept",
                     std::max(steps_on_record_, roster_.furthest_step()));
}

std::optional<Verdict> RunMonitor::verdict() const {
  if (!verdict_ || verdict_->code != ExitCode::kInterrupted) return verdict_;
  return Verdict{verdict_->code, interrupted_text()};
}

void RunMonitor::on_last_checkpoint(std::int64_t step, TimePoint now) {
  if (stopping()) return;
  conclude({ExitCode::kTerminated, fmt::format("ended by SIGTERM; a last checkpoint is kept, of step {}", step)}, now);
}

// Time.

void RunMonitor::on_tick(TimePoint now) {
  notice_absence(now);
  for (std::size_t i = 0; i < roster_.size() && !stopping(); ++i) {
    if (const std::optional<Finding> finding = diagnosis_.silence_of(i, now)) respond(*finding, now);
  }
  while (!stopping()) {
    const std::optional<Finding> finding = diagnosis_.take_due(now);
    if (!finding) break;
    respond(*finding, now);
  }
  if (!stopping()) {
    if (const std::optional<Finding> finding = diagnosis_.overdue_worker(now)) respond(*finding, now);
  }
  if (!stopping()) {
    if (const std::optional<Finding> finding = diagnosis_.overdue_afterwards(now)) respond(*finding, now);
  }
  if (!stopping()) restart_what_is_due(now);
  if (!stopping()) {
    for (std::string& line : diagnosis_.take_stall_lines(now)) act(ReportLine{std::move(line)});
  }
  if (phase_ == RunPhase::kStopping && now >= kill_at_) kill_all();
}

Duration RunMonitor::notice_absence(TimePoint now) {
  const Duration absence = diagnosis_.notice_absence(now);
  if (absence == Duration::zero()) return absence;
  roster_.forgive(absence, now);
  kill_at_ += absence;
  return absence;
}

// From diagnosis to recovery.

void RunMonitor::respond(const Finding& finding, TimePoint now) {
  std::visit([&](const auto& fault) { respond_to(fault, now); }, finding);
}

void RunMonitor::respond_to(const ProcessAtFault& fault, TimePoint now) {
  if (roster_.is_evaluator(fault.process)) {
    if (fault.evidence == Evidence::kSilence) act(KillProcess{fault.process});
    return lose_evaluator(fault.process, fault.verdict, now);
  }
  if (fault.evidence == Evidence::kReport && !recovery_.survives_reports()) return conclude(fault.verdict, now);
  // It has given up, or others have given it up, whether or not it manages to end.
  if (!has_ended(roster_.phase(fault.process))) act(KillProcess{fault.process});
  lose(fault.process, fault.verdict, now);
}

void RunMonitor::respond_to(const LostTouch& fault, TimePoint now) {
  if (phase_ == RunPhase::kRestoring) return;  // the next membership epoch will help it
  if (training_is_over(phase_)) return respond_to(ProcessAtFault{fault.process, Evidence::kReport, fault.verdict}, now);
  act(ReportLine{fmt::format("{}; all connect anew", fault.verdict.line)});
  begin_epoch(now);
}

void RunMonitor::respond_to(const HangsBeforeJoining& fault, TimePoint now) {
  if (const std::optional<Verdict> in_vain = recovery_.verdict_on_hanging(fault.process, fault.line)) {
    return conclude(*in_vain, now);
  }
  act(KillProcess{fault.process});  // it is restarted when it has ended
  act(ReportLine{fault.line});
  on_heard(fault.process, now);  // so that this is said once for each timeout
}

void RunMonitor::respond_to(const RunAtFault& fault, TimePoint now) { conclude(fault.verdict, now); }

void RunMonitor::respond_to(const EvaluationsOverdue& fault, TimePoint now) {
  if (fault.evaluator) give_up_evaluator(*fault.evaluator);
  end_well(fault.text, now);
}

void RunMonitor::lose(std::size_t process, const Verdict& verdict, TimePoint now) {
  roster_.apply(process, ProcessEvent::kLoss);
  diagnosis_.forget_reports(process);
  const RecoveryPolicy::Response response = recovery_.on_lost(process, phase_);
  if (const auto* ends = std::get_if<RecoveryPolicy::EndsRun>(&response)) {
    return conclude({verdict.code, verdict.line + ends->because}, now);
  }
  const auto& goes_on = std::get<RecoveryPolicy::RunGoesOn>(response);
  if (phase_ == RunPhase::kGathering && lost_before_training_.empty()) lost_before_training_ = verdict.line;
  act(ReportLine{fmt::format("{}; {}", verdict.line, goes_on.consequence)});
  go_on_without(process, goes_on, now);
}

void RunMonitor::go_on_without(std::size_t process, const RecoveryPolicy::RunGoesOn& response, TimePoint now) {
  if (roster_.is_worker(process)) {
    act(DropWorker{plan_.processes[process].rank});
    diagnosis_.forget_stalls(process);
  }
  if (response.event) enter(*response.event);
  // Other processes were not needed when they ended, and are needed now.
  for (std::size_t i = 0; i < roster_.size() && !stopping(); ++i) {
    if (!roster_.is_evaluator(i) && roster_.phase(i) == ProcessPhase::kGone) plan_restart(i, now);
  }
  if (stopping()) return;
  if (response.others_lack_state) {
    give_up_workers([](ProcessPhase phase) { return phase != ProcessPhase::kHasFinalWeights; });
  }
  if (response.needs_epoch) begin_epoch(now);
  release_training_if_all_ready();
  stop_if_all_done(now);
}

template <typename Predicate>
void RunMonitor::give_up_workers(Predicate&& is_given_up) {
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (!roster_.is_worker(i) || !still_there(i) || !is_given_up(roster_.phase(i))) continue;
    roster_.apply(i, ProcessEvent::kLoss);
    diagnosis_.forget_reports(i);
    act(KillProcess{i});
    act(DropWorker{plan_.processes[i].rank});
  }
}

void RunMonitor::plan_restart(std::size_t process, TimePoint now) {
  if (roster_.phase(process) != ProcessPhase::kGone) return;  // it awaits its restart already
  const RecoveryPolicy::Restart restart = recovery_.restart_of(process, phase_, now);
  if (const auto* at = std::get_if<TimePoint>(&restart)) roster_.plan_restart(process, *at);
  if (const auto* in_vain = std::get_if<Verdict>(&restart)) conclude(*in_vain, now);
}

void RunMonitor::restart_what_is_due(TimePoint now) {
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (roster_.phase(i) != ProcessPhase::kAwaitingRestart || now < *roster_[i].restart_at) continue;
    roster_.on_restart(i, now);
    act(RestartProcess{i});
  }
}

void RunMonitor::begin_epoch(TimePoint now) {
  if (const std::optional<Verdict> in_vain = recovery_.begin_epoch(phase_)) return conclude(*in_vain, now);
  diagnosis_.on_epoch_begins();
  roster_.on_epoch_begins();
  enter(RunEvent::kEpochBegins);
  act(BeginMembershipEpoch{});
}

void RunMonitor::release_training_if_all_ready() {
  if (phase_ != RunPhase::kGathering || !chief() || !roster_.all_are_ready_to_train()) return;
  roster_.on_training_begins();
  enter(RunEvent::kAllReady);
  act(ReleaseTraining{});
}

// The evaluator.

void RunMonitor::lose_evaluator(std::size_t process, const Verdict& verdict, TimePoint now) {
  roster_.apply(process, ProcessEvent::kLoss);
  const EvaluatorPolicy::Loss loss = evaluator_.on_lost();
  act(ReportLine{fmt::format("{}; {}", verdict.line, loss.consequence)});
  if (!loss.start_after) {
    give_up_evaluator(process);
    return stop_if_all_done(now);
  }
  if (phase_ == RunPhase::kDraining) diagnosis_.await_the_rest(now + *loss.start_after);
  if (has_ended(roster_.phase(process))) return roster_.plan_restart(process, now + *loss.start_after);
  roster_.set_restart_pause(process, loss.start_after);  // there is only one: it has to end first
}

void RunMonitor::give_up_evaluator(std::size_t process) {
  roster_.apply(process, ProcessEvent::kLoss);
  roster_.set_restart_pause(process, std::nullopt);
  if (!has_ended(roster_.phase(process))) act(KillProcess{process});
  if (evaluates()) (void)evaluator_.give_up();
}

bool RunMonitor::wants_snapshots() {
  if (evaluator_.wants_snapshots()) return true;
  if (evaluates() && !std::exchange(reported_backlog_, true)) {
    act(ReportLine{fmt::format("{} snapshots wait to be evaluated; until fewer do, points are left out",
                               evaluator_.backlog().waiting())});
  }
  return false;
}

// How a run ends.

void RunMonitor::stop_if_all_done(TimePoint now) {
  if (stopping() || !diagnosis_.is_settled() || !roster_.all_workers_are_done()) return;
  if (phase_ != RunPhase::kDraining) {
    enter(RunEvent::kWorkersDone);
    diagnosis_.await_the_rest(now);
  }
  if (roster_.all_servers_are_done() && evaluator_.backlog().waiting() == 0) end_well("", now);
}

void RunMonitor::end_well(const std::string& why, TimePoint now) {
  if (const std::string missing = evaluator_.backlog().missing_text(); !missing.empty()) {
    act(ReportLine{why + "not evaluated: " + missing});
  }
  begin_stopping(RunEvent::kAllDone, "", now);
}

void RunMonitor::conclude(const Verdict& verdict, TimePoint now) {
  verdict_ = diagnosis_.with_absence(verdict, now);
  // Who then waits in vain is not at the root.
  const bool waits_in_vain = phase_ == RunPhase::kGathering && verdict.code == ExitCode::kTimeout;
  if (waits_in_vain && !lost_before_training_.empty()) verdict_->line += "; before that, " + lost_before_training_;
  begin_stopping(RunEvent::kVerdict, verdict_->line, now);
  // On a host that is gone nobody hears the order to stop, and all would wait for that.
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (plan_.processes[i].remote && diagnosis_.is_quiet(i, now)) act(KillProcess{i});
  }
}

void RunMonitor::begin_stopping(RunEvent event, const std::string& reason, TimePoint now) {
  enter(event);
  kill_at_ = now + std::min(kStopPatience, options_.timeout);
  act(StopAll{reason});
}

void RunMonitor::kill_all() {
  enter(RunEvent::kPatienceOver);
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (!has_ended(roster_.phase(i))) act(KillProcess{i});
  }
}

std::vector<MonitorAction> RunMonitor::take_actions() { return std::exchange(actions_, {}); }

}  // namespace syncopate::experiments

#include "experiments/cluster/coordinator/run_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate::experiments {
namespace {

// How long a report that may have a deeper cause is kept before it becomes the verdict.
constexpr Duration kExplanationTime = std::chrono::milliseconds(1500);
// mpirun ends about three seconds after it has begun to end its processes, and then says why.
constexpr Duration kCarrierExplanationTime = std::chrono::seconds(6);
// How many membership epochs may follow each other without a finished step.
constexpr int kMostRegroupsInVain = 8;
// How often in a row a needed server is restarted. There is a pause before the second restart, which doubles each time.
constexpr int kMostStartsInVain = 6;
constexpr Duration kStartPause = std::chrono::milliseconds(100);
// The number of timeouts allowed for the last responses, for the final weights to reach the workers, and for one of
// them to send the weights here.
constexpr int kLeaveTimeouts = 3;
// How long processes that were asked to stop have before they are killed.
constexpr Duration kStopPatience = std::chrono::seconds(5);

std::string describe_workers(int count) { return count == 1 ? "1 worker goes" : fmt::format("{} workers go", count); }

}  // namespace

RunMonitor::RunMonitor(const JobPlan& plan, const Options& options, TimePoint now)
    : plan_(plan),
      options_(options),
      course_(plan, options.recovery, options.resume),
      roster_(plan, now),
      stalls_(count_of(plan, Role::kWorker), options.stalls),
      attention_(now),
      evaluator_(options.evaluation_backlog, options.has_target) {}

void RunMonitor::on_hello(std::size_t process, std::int64_t pid, const std::string& host, TimePoint now) {
  ProcessRoster::Entry& self = roster_[process];
  self.pid = pid;
  self.host = host;
  if (self.state == State::kExpected) self.state = State::kRunning;
  on_heard(process, now);
  if (!roster_.is_evaluator(process) || !roster_.is_coming_back(process) || !evaluates()) return;
  self.lost = false;  // it needs nothing from others to take part
  actions_.push_back({MonitorAction::Kind::kReport, process, 0,
                      fmt::format("{} is back (pid {})", plan_.processes[process].name(), self.pid)});
}

void RunMonitor::on_heard(std::size_t process, TimePoint now) { roster_[process].last_heard = now; }

void RunMonitor::on_heartbeat(std::size_t process, const std::string& operation, std::int64_t step,
                              const std::optional<CollectiveReport>& collective, TimePoint now) {
  note(process, operation, step, now);
  if (!roster_.is_worker(process) || !still_there(process)) return;
  stalls_.on_heartbeat(plan_.processes[process].rank, operation, step, collective, now);
}

void RunMonitor::note(std::size_t process, const std::string& operation, std::int64_t step, TimePoint now) {
  roster_[process].operation = operation;
  roster_[process].step = step;
  on_heard(process, now);
}

void RunMonitor::on_ready_to_train(std::size_t process, TimePoint now) {
  roster_[process].ready_to_train = true;
  on_heard(process, now);
  release_training_if_all_ready();
}

void RunMonitor::on_join_request(std::size_t process, TimePoint now) {
  on_heard(process, now);
  ProcessRoster::Entry& self = roster_[process];
  if (stopping_ || is_closed_ || self.state != State::kRunning) return;
  if (!self.lost) return;  // the caller tells it its membership epoch, or will do so if there is another one
  self.lost = false;
  self.starts = 0;
  course_.on_ready(process);
  actions_.push_back({MonitorAction::Kind::kReport, process, 0,
                      fmt::format("{} is back (pid {})", plan_.processes[process].name(), self.pid)});
  if (roster_.is_worker(process)) {
    actions_.push_back({MonitorAction::Kind::kWorkerJoined, process, plan_.processes[process].rank, {}});
    stalls_.forget(plan_.processes[process].rank);
  }
  if (!waits_for_homes()) regroup(now);
}

void RunMonitor::on_step_finished(std::size_t process, std::int64_t number) {
  if (number != generation().number) return;
  regroups_in_vain_ = 0;
  roster_[process].trains = true;
  roster_[process].stepped_in = number;
  roster_.note_homes_train();
  if (roster_.all_have_stepped_in(number)) course_.on_all_train();
}

void RunMonitor::on_leaving(std::size_t process) {
  roster_[process].is_leaving = true;
  is_closed_ = !waits_for_homes();
}

void RunMonitor::on_training_over(std::size_t process, TimePoint now) {
  roster_[process].trains = true;  // it may have joined only for the end of training
  roster_[process].has_final_weights = true;
  if (std::exchange(training_over_, true)) return;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (roster_.is_worker(i) && still_there(i) && training_released_ && !trains(i)) give_up(i);
  }
  if (waits_for_homes()) give_up_who_lacks_final_weights();
  stop_if_all_done(now);
}

void RunMonitor::give_up_who_lacks_final_weights() {
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (roster_.is_worker(i) && still_there(i) && !roster_[i].has_final_weights) give_up(i);
  }
}

void RunMonitor::give_up(std::size_t worker) {
  roster_[worker].lost = true;
  suspicions_.forget(worker);
  actions_.push_back({MonitorAction::Kind::kKill, worker});
  actions_.push_back({MonitorAction::Kind::kWorkerLost, worker, plan_.processes[worker].rank, {}});
}

void RunMonitor::on_trouble(std::size_t process, std::int64_t number, const Status& status,
                            const std::string& operation, std::int64_t step, TimePoint now) {
  note(process, operation, step, now);
  if (stopping_ || number != generation().number || roster_[process].lost) return;
  Verdict verdict{exit_code_of(status), fmt::format("{}: {}", roster_.describe(process, now), status.message())};
  suspicions_.add(
      {.process = process, .verdict = std::move(verdict), .until = now + kExplanationTime, .is_trouble = true});
}

// The worker may well be heard here: what failed is its link to the server, and it waits like the others.
void RunMonitor::on_missing(std::size_t process, std::int64_t number, int rank, Duration waited, TimePoint now) {
  if (stopping_ || number != generation().number) return;
  if (awake_since_ && now - waited < *awake_since_) return;  // it may have waited for an answer of the coordinator
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (!roster_.is_worker(i) || plan_.processes[i].rank != rank || !still_there(i)) continue;
    actions_.push_back({MonitorAction::Kind::kKill, i});
    const std::string line = fmt::format("{} has pushed nothing to {} for {:.3g} s, where others wait for it",
                                         roster_.describe(i, now), plan_.processes[process].name(), seconds(waited));
    return lose(i, {ExitCode::kTimeout, line}, now);
  }
}

void RunMonitor::regroup(TimePoint now) {
  if (++regroups_in_vain_ > kMostRegroupsInVain) {
    const std::string why =
        fmt::format("no step was finished in {} generations, at step {}", kMostRegroupsInVain, roster_.furthest_step());
    return conclude({ExitCode::kTimeout, why}, now);
  }
  course_.proclaim(!training_released_, checkpoint_);
  suspicions_.forget_troubles();
  leave_by_.reset();
  for (std::size_t i = 0; i < roster_.size(); ++i) roster_[i].is_leaving = false;
  // Before training, all ask again for the first epoch.
  if (!training_released_) {
    for (std::size_t i = 0; i < roster_.size(); ++i) roster_[i].ready_to_train = false;
  }
  actions_.push_back({MonitorAction::Kind::kProclaim});
}

void RunMonitor::release_training_if_all_ready() {
  if (training_released_ || stopping_ || !chief() || !roster_.all_are_ready_to_train()) return;
  training_released_ = true;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    roster_[i].trains = roster_[i].ready_to_train || serves(plan_.processes[i].role);
  }
  actions_.push_back({MonitorAction::Kind::kReleaseTraining});
}

bool RunMonitor::wants_snapshots() {
  if (evaluator_.wants_snapshots()) return true;
  if (evaluates() && !std::exchange(reported_backlog_, true)) {
    actions_.push_back({MonitorAction::Kind::kReport, 0, 0,
                        fmt::format("{} snapshots wait to be evaluated; until fewer do, points are left out",
                                    evaluator_.backlog().waiting())});
  }
  return false;
}

bool RunMonitor::on_evaluation(std::int64_t point, bool final, TimePoint now) {
  const bool was_waited_for = evaluator_.on_evaluation(point, final);
  if (end_by_ && was_waited_for) end_by_ = now + options_.timeout;
  stop_if_all_done(now);
  return was_waited_for;
}

void RunMonitor::on_finished(std::size_t process, TimePoint now) {
  on_heard(process, now);
  if (roster_[process].state == State::kEnded) return;  // too late: its end has been judged
  roster_[process].state = State::kFinished;
  stop_if_all_done(now);
}

void RunMonitor::stop_if_all_done(TimePoint now) {
  if (stopping_ || !suspicions_.empty()) return;
  bool workers_done = true, servers_done = true;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    const State state = roster_[i].state;
    const bool done = state == State::kFinished || state == State::kEnded || roster_[i].lost;
    if (plan_.processes[i].role == Role::kWorker) workers_done &= done;
    if (serves(plan_.processes[i].role)) servers_done &= done;
  }
  if (!workers_done) return;
  if (!end_by_) end_by_ = now + options_.timeout;
  if (servers_done && evaluator_.backlog().waiting() == 0) end_well("", now);
}

void RunMonitor::end_well(const std::string& why, TimePoint now) {
  if (const std::string missing = evaluator_.backlog().missing_text(); !missing.empty()) {
    actions_.push_back({MonitorAction::Kind::kReport, 0, 0, why + "not evaluated: " + missing});
  }
  begin_stopping("", now);
}

void RunMonitor::on_failure(std::size_t process, const Status& status, const std::string& operation, std::int64_t step,
                            TimePoint now) {
  note(process, operation, step, now);
  if (roster_[process].state == State::kEnded) return;
  roster_[process].state = State::kFailed;
  if (stopping_ || roster_[process].lost) return;
  Verdict verdict{exit_code_of(status), fmt::format("{}: {}", roster_.describe(process, now), status.message())};
  const bool may_have_a_cause = status.code() == Code::kPeerLost || status.code() == Code::kDeadlineExceeded;
  // A failure before anything was trained is better repaired first.
  if (roster_.is_evaluator(process) && (training_released_ || may_have_a_cause)) {
    return lose_evaluator(process, verdict, now);
  }
  if (status.code() == Code::kDeadlineExceeded) verdict.line += stall_text(now);
  if (!may_have_a_cause) return conclude(std::move(verdict), now);
  suspicions_.add({process, std::move(verdict), now + kExplanationTime});
}

void RunMonitor::on_end(std::size_t process, const ProcessEnd& end, TimePoint now) {
  ProcessRoster::Entry& self = roster_[process];
  const State before = std::exchange(self.state, State::kEnded);
  if (roster_.is_evaluator(process) && !stopping_) return on_evaluator_end(process, end, now);
  if (self.lost && !stopping_) start_again_later(process, now);
  if (stopping_ || self.lost) return;
  const bool in_order = before == State::kFinished && end.exit_code.value_or(0) == 0 && !end.signal;
  // A process that has reported its failure ends for that reason, and the report has been judged.
  if (in_order || before == State::kFailed || died_of_a_sibling(end)) return;
  Verdict verdict{ExitCode::kProcessLost, fmt::format("{} {}", roster_.describe(process, now), describe(end))};
  if (end.exit_code == static_cast<int>(ExitCode::kOutput)) verdict.code = ExitCode::kOutput;
  // mpirun ends the processes on this host because of one on another host, whose end it will report.
  if (end.is_known_to_carrier_alone() && has_remote_processes(plan_)) {
    suspicions_.add({process, std::move(verdict), now + kCarrierExplanationTime, true});
    return;
  }
  lose(process, std::move(verdict), now);
}

void RunMonitor::on_evaluator_end(std::size_t process, const ProcessEnd& end, TimePoint now) {
  if (evaluator_pause_) return start_evaluator_later(process, now);  // its loss has been reported
  if (!evaluates()) return;
  lose_evaluator(process, {ExitCode::kProcessLost, fmt::format("{} {}", roster_.describe(process, now), describe(end))},
                 now);
}

bool RunMonitor::died_of_a_sibling(const ProcessEnd& end) const {
  return end.is_known_to_carrier_alone() && suspicions_.has_passed_deadline();
}

void RunMonitor::on_carrier_end(const std::vector<std::size_t>& carried, const ProcessEnd& end,
                                const std::string& carrier, const std::string& last_words, TimePoint now) {
  bool all_lived = true;
  for (std::size_t process : carried) {
    const State before = roster_[process].state;
    // The end of other processes here is detected directly.
    if (before == State::kEnded || (before != State::kExpected && !plan_.processes[process].remote)) continue;
    roster_[process].state = State::kEnded;  // it has died with its carrier, or was never started
    all_lived &= before == State::kFinished || before == State::kFailed;
  }
  if (stopping_ || (end.exit_code == 0 && all_lived)) return;
  Verdict verdict{ExitCode::kProcessLost, fmt::format("{} {}: {}", carrier, describe(end), last_words)};
  // The carrier ends by itself because a process has ended; none of them kills it.
  if (end.signal) return conclude(std::move(verdict), now);
  suspicions_.forget_of_carrier();
  suspicions_.add({std::nullopt, std::move(verdict), now + kExplanationTime});
}

void RunMonitor::on_output_failure(const Status& status, TimePoint now) {
  if (!stopping_) conclude({ExitCode::kOutput, status.message()}, now);
}

void RunMonitor::on_interrupt(TimePoint now) {
  if (stopping_) {
    kill_at_ = now;  // asked twice
    return;
  }
  conclude({ExitCode::kInterrupted,
            fmt::format("interrupted at step {}; what was recorded is kept", roster_.furthest_step())},
           now);
}

void RunMonitor::on_tick(TimePoint now) {
  notice_absence(now);
  if (!stopping_) judge_silence(now);
  if (!stopping_) judge_suspicions(now);
  if (!stopping_) judge_leaving(now);
  if (!stopping_) judge_stragglers(now);
  if (!stopping_) start_what_is_due(now);
  if (!stopping_) {
    for (std::string& line : stalls_.take_lines(now)) {
      actions_.push_back({MonitorAction::Kind::kReport, 0, 0, std::move(line)});
    }
  }
  if (stopping_ && now >= kill_at_) kill_all();
}

Duration RunMonitor::notice_absence(TimePoint now) {
  const Duration absence = attention_.absence(now);
  if (absence == Duration::zero()) return absence;
  awake_since_ = now;
  absence_ = absence;
  roster_.forgive(absence, now);
  suspicions_.forgive(absence);
  stalls_.forgive(now);
  if (leave_by_) *leave_by_ += absence;
  if (end_by_) *end_by_ += absence;
  kill_at_ += absence;
  return absence;
}

// Silence is detected well before processes that wait for the silent one pass their own deadlines.
void RunMonitor::judge_silence(TimePoint now) {
  for (std::size_t i = 0; i < roster_.size() && !stopping_; ++i) {
    ProcessRoster::Entry& self = roster_[i];
    const bool starting = self.state == State::kExpected;
    const bool comes_back = roster_.is_coming_back(i);
    if ((self.lost && !comes_back) || (!starting && self.state != State::kRunning)) continue;
    if (now - self.last_heard < (starting ? options_.timeout : options_.timeout / 2)) continue;
    const std::string how = starting ? fmt::format("has not said hello for {:.3g} s", seconds(now - self.last_heard))
                                     : "has stopped answering";
    actions_.push_back({MonitorAction::Kind::kKill, i});
    if (comes_back) {  // it is restarted when it has ended
      actions_.push_back({MonitorAction::Kind::kReport, i, 0, fmt::format("{} {}", roster_.describe(i, now), how)});
      self.last_heard = now;
      continue;
    }
    lose(i, {ExitCode::kTimeout, fmt::format("{} {}{}", roster_.describe(i, now), how, stall_text(now))}, now);
  }
}

void RunMonitor::judge_suspicions(TimePoint now) {
  while (!stopping_) {
    std::optional<Suspicion> due = suspicions_.take_due(now);
    if (!due) return;
    if (due->is_trouble && waits_for_homes()) continue;  // the next membership epoch will resolve it
    if (due->is_trouble && !training_over_) {
      actions_.push_back(
          {MonitorAction::Kind::kReport, *due->process, 0, fmt::format("{}; all connect anew", due->verdict.line)});
      regroup(now);
      continue;
    }
    if (!due->process || !options_.recovery.survives_workers) return conclude(std::move(due->verdict), now);
    // The process has given up, whether or not it manages to end.
    if (roster_[*due->process].state != State::kEnded) {
      actions_.push_back({MonitorAction::Kind::kKill, *due->process});
    }
    lose(*due->process, std::move(due->verdict), now);
  }
}

// Leaving has no deadline of its own, since it lasts as long as the slowest worker trains.
void RunMonitor::judge_leaving(TimePoint now) {
  if (!leave_by_ && roster_.all_are_leaving()) leave_by_ = now + kLeaveTimeouts * options_.timeout;
  if (!leave_by_ || now < *leave_by_ || !chief()) return;
  conclude(
      {ExitCode::kTimeout, fmt::format("{} has not finished, {:.3g} s after the last step of all workers",
                                       roster_.describe(*chief(), now), seconds(kLeaveTimeouts * options_.timeout))},
      now);
}

// Once the workers have finished, servers must finish within the timeout, and the evaluator each evaluation.
void RunMonitor::judge_stragglers(TimePoint now) {
  if (!end_by_ || now < *end_by_) return;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (roster_.is_worker(i) || roster_.is_evaluator(i) || !still_there(i)) continue;
    return conclude({ExitCode::kTimeout, fmt::format("{} has not finished, {:.3g} s after all workers",
                                                     roster_.describe(i, now), seconds(options_.timeout))},
                    now);
  }
  std::string why;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (!roster_.is_evaluator(i)) continue;
    why = fmt::format("{} has not finished, {:.3g} s after all workers; ", roster_.describe(i, now),
                      seconds(options_.timeout));
    give_up_evaluator(i);
  }
  end_well(why, now);
}

void RunMonitor::kill_all() {
  if (std::exchange(killed_all_, true)) return;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (roster_[i].state != State::kEnded) actions_.push_back({MonitorAction::Kind::kKill, i});
  }
}

void RunMonitor::lose_evaluator(std::size_t process, const Verdict& verdict, TimePoint now) {
  roster_[process].lost = true;
  const EvaluatorCourse::Loss loss = evaluator_.on_lost();
  actions_.push_back({MonitorAction::Kind::kReport, process, 0, fmt::format("{}; {}", verdict.line, loss.consequence)});
  if (!loss.start_after) {
    give_up_evaluator(process);
    return stop_if_all_done(now);
  }
  evaluator_pause_ = loss.start_after;
  if (end_by_) end_by_ = now + *loss.start_after + options_.timeout;
  if (roster_[process].state == State::kEnded) start_evaluator_later(process, now);
}

// Restarts it only once it has ended: there is only one.
void RunMonitor::start_evaluator_later(std::size_t process, TimePoint now) {
  restarts_.push_back({process, now + *std::exchange(evaluator_pause_, {})});
}

void RunMonitor::give_up_evaluator(std::size_t process) {
  roster_[process].lost = true;
  evaluator_pause_.reset();
  std::erase_if(restarts_, [&](const Restart& restart) { return restart.process == process; });
  if (roster_[process].state != State::kEnded) actions_.push_back({MonitorAction::Kind::kKill, process});
  if (evaluates()) (void)evaluator_.give_up();
}

void RunMonitor::lose(std::size_t process, Verdict verdict, TimePoint now) {
  if (roster_.is_evaluator(process)) return lose_evaluator(process, verdict, now);
  roster_[process].lost = true;
  suspicions_.forget(process);
  const bool other_is_empty = training_released_ && roster_.other_home_is_empty(process);
  const Loss loss = course_.on_lost(process, {.begins = !training_released_,
                                              .can_go_back = !checkpoint_.empty() && !training_over_,
                                              .other_home_is_empty = other_is_empty});
  if (const std::optional<std::string> why = why_it_ends(process, loss, other_is_empty)) {
    verdict.line += *why;
    return conclude(std::move(verdict), now);
  }
  actions_.push_back(
      {MonitorAction::Kind::kReport, process, 0, fmt::format("{}; {}", verdict.line, consequence(process, loss))});
  go_on_without(process, loss, now);
}

std::optional<std::string> RunMonitor::why_it_ends(std::size_t process, Loss loss, bool other_is_empty) const {
  const bool is_worker = roster_.is_worker(process);
  // Others may have failed, too, and not be lost yet; or they have just joined, and hold nothing.
  const bool nobody_goes_on = is_worker && !training_over_ && (roster_.live_workers() == 0 || nobody_holds_weights());
  if (loss != Loss::kEndsRun && !nobody_goes_on) {
    const bool others_are_done = !is_worker && !training_over_ && roster_.any_home_has_finished();
    if (!others_are_done) return std::nullopt;
    return "; others that serve have finished, and cannot take part in another generation";
  }
  if (other_is_empty) return "; what was to stand in for it has only just come, and may hold nothing yet";
  if (!is_worker || roster_.live_workers() == 0) return "";
  return nobody_holds_weights() ? "; nobody who is left holds the weights" : "; this mode needs every worker";
}

void RunMonitor::go_on_without(std::size_t process, Loss loss, TimePoint now) {
  if (roster_.is_worker(process)) {
    actions_.push_back({MonitorAction::Kind::kWorkerLost, process, plan_.processes[process].rank, {}});
    stalls_.forget(plan_.processes[process].rank);
  }
  if (loss == Loss::kGoBack) is_closed_ = false;
  // Other processes were not needed when they ended, and are needed now.
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (!roster_.is_evaluator(i) && roster_[i].lost && roster_[i].state == State::kEnded) start_again_later(i, now);
  }
  if (stopping_) return;
  if (!roster_.is_worker(process) && training_over_) give_up_who_lacks_final_weights();
  if (loss != Loss::kOthersGoOn && !training_over_ && !waits_for_homes()) regroup(now);
  release_training_if_all_ready();
  stop_if_all_done(now);
}

bool RunMonitor::nobody_holds_weights() const {
  return options_.recovery.regroups_without_worker && training_released_ && roster_.no_worker_trains();
}

std::string RunMonitor::consequence(std::size_t process, Loss loss) const {
  const ProcessSpec& spec = plan_.processes[process];
  if (spec.role == Role::kWorker) return fmt::format("{} on", describe_workers(roster_.live_workers()));
  if (loss == Loss::kGoBack) {
    return (waits_for_homes() ? "it is started again, and all go back to " : "all go back to ") + checkpoint_;
  }
  const char* const other = spec.role == Role::kServer ? "standby" : "server";
  return fmt::format("{} {} {}", other, spec.rank,
                     spec.role == Role::kServer ? "takes its place" : "goes on without it");
}

// Restarts a process once it has ended: there is only one of each. A process that ends repeatedly is restarted after
// ever longer pauses.
void RunMonitor::start_again_later(std::size_t process, TimePoint now) {
  const bool is_needed =
      course_.goes_back() && plan_.processes[process].role == Role::kServer && !course_.has_home(process);
  if (training_over_ || (!is_needed && (is_closed_ || !options_.recovery.respawn_after))) return;
  if (std::ranges::count(restarts_, process, &Restart::process) > 0) return;
  const int starts = roster_[process].starts;
  if (is_needed && starts >= kMostStartsInVain) {
    const std::string line = fmt::format("{} was started again {} times, and has not taken part since",
                                         plan_.processes[process].name(), starts);
    return conclude({ExitCode::kProcessLost, line}, now);
  }
  const Duration pause = starts == 0 ? Duration{} : kStartPause * (1 << std::min(starts, kMostStartsInVain));
  restarts_.push_back({process, now + pause + (is_needed ? Duration{} : *options_.recovery.respawn_after)});
}

void RunMonitor::start_what_is_due(TimePoint now) {
  std::erase_if(restarts_, [&](const Restart& restart) {
    if (now < restart.at) return false;
    roster_.expect_again(restart.process, now);
    actions_.push_back({MonitorAction::Kind::kStart, restart.process});
    return true;
  });
}

void RunMonitor::conclude(Verdict verdict, TimePoint now) {
  const bool is_of_waits = verdict.code == ExitCode::kTimeout || verdict.code == ExitCode::kProcessLost;
  if (is_of_waits && awake_since_ && now - *awake_since_ < options_.timeout) {
    verdict.line += fmt::format("; before that, run_experiment itself had not run for {:.1f} s", seconds(absence_));
  }
  verdict_ = std::move(verdict);
  begin_stopping(verdict_->line, now);
}

void RunMonitor::begin_stopping(const std::string& reason, TimePoint now) {
  stopping_ = true;
  kill_at_ = now + std::min(kStopPatience, options_.timeout);
  actions_.push_back({MonitorAction::Kind::kStopAll, 0, 0, reason});
}

std::vector<MonitorAction> RunMonitor::take_actions() { return std::exchange(actions_, {}); }

std::string RunMonitor::stall_text(TimePoint now) const {
  // Silence is judged after half of the timeout; a stall reported since then is more recent.
  const std::optional<std::string> stall = stalls_.stall(options_.timeout / 4, now);
  return stall ? "; " + *stall : "";
}

}  // namespace syncopate::experiments

#include "experiments/cluster/coordinator/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

namespace syncopate::experiments {
namespace {

// How long a report that may have a deeper cause is kept before it is judged.
constexpr Duration kExplanationTime = std::chrono::milliseconds(1500);
// mpirun ends about three seconds after it has begun to end its processes, and then says why.
constexpr Duration kCarrierExplanationTime = std::chrono::seconds(6);
// The number of timeouts allowed for the last responses, for the final weights to reach the workers, and for one of
// them to send the weights here.
constexpr int kLeaveTimeouts = 3;

}  // namespace

Diagnosis::Diagnosis(const JobPlan& plan, const ProcessRoster& roster, Duration timeout,
                     const StallInspector::Options& stalls, TimePoint now)
    : plan_(plan),
      roster_(roster),
      timeout_(timeout),
      stalls_(count_of(plan, Role::kWorker), stalls),
      attention_(now) {}

void Diagnosis::on_heartbeat(std::size_t worker, const std::optional<CollectiveReport>& collective, TimePoint now) {
  const ProcessRoster::Entry& self = roster_[worker];
  stalls_.on_heartbeat(plan_.processes[worker].rank, self.operation, self.step, collective, now);
}

void Diagnosis::on_trouble(std::size_t process, const Status& status, TimePoint now) {
  Verdict verdict{exit_code_of(status), fmt::format("{}: {}", roster_.describe(process, now), status.message())};
  suspicions_.add(
      {.process = process, .verdict = std::move(verdict), .until = now + kExplanationTime, .is_trouble = true});
}

// The worker may well be heard here: what failed is its link to the server, and it waits like the others.
std::optional<Finding> Diagnosis::on_missing(std::size_t process, int rank, Duration waited, TimePoint now) const {
  // It may have waited for an answer of the coordinator.
  if (awake_since_ && now - waited < *awake_since_) return std::nullopt;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (!roster_.is_worker(i) || plan_.processes[i].rank != rank || !roster_.still_there(i)) continue;
    const std::string what = fmt::format("has pushed nothing to {} for {:.3g} s, where others wait for it",
                                         plan_.processes[process].name(), seconds(waited));
    return ProcessAtFault{i, Evidence::kMissing, verdict_on(i, ExitCode::kTimeout, what, now)};
  }
  return std::nullopt;
}

std::optional<Finding> Diagnosis::on_failure(std::size_t process, const Status& status, bool has_trained,
                                             TimePoint now) {
  Verdict verdict{exit_code_of(status), fmt::format("{}: {}", roster_.describe(process, now), status.message())};
  const bool may_have_a_cause = status.code() == Code::kPeerLost || status.code() == Code::kDeadlineExceeded;
  // A failure before anything was trained is better repaired first.
  if (roster_.is_evaluator(process) && (has_trained || may_have_a_cause)) {
    return ProcessAtFault{process, Evidence::kReport, std::move(verdict)};
  }
  if (status.code() == Code::kDeadlineExceeded) verdict.line += stall_text(now);
  if (!may_have_a_cause) return RunAtFault{std::move(verdict)};
  suspicions_.add({process, std::move(verdict), now + kExplanationTime});
  return std::nullopt;
}

std::optional<Finding> Diagnosis::on_exit(std::size_t process, ProcessPhase before, const ProcessEnd& end,
                                          TimePoint now) {
  Verdict verdict = verdict_on(process, ExitCode::kProcessLost, describe(end), now);
  // A run has an evaluator for as long as there may be something to evaluate.
  if (roster_.is_evaluator(process)) return ProcessAtFault{process, Evidence::kExit, std::move(verdict)};
  const bool in_order = before == ProcessPhase::kFinished && end.exit_code.value_or(0) == 0 && !end.signal;
  // A process that has reported its failure ends for that reason, and the report has been judged.
  if (in_order || before == ProcessPhase::kFailed) return std::nullopt;
  // Its carrier has ended it because a sibling has given up, which is no cause.
  if (end.is_known_to_carrier_alone() && suspicions_.has_passed_deadline()) return std::nullopt;
  if (end.exit_code == static_cast<int>(ExitCode::kOutput)) verdict.code = ExitCode::kOutput;
  // mpirun ends the processes on this host because of one on another host, whose end it will report.
  if (end.is_known_to_carrier_alone() && has_remote_processes(plan_)) {
    suspicions_.add({process, std::move(verdict), now + kCarrierExplanationTime, true});
    return std::nullopt;
  }
  return ProcessAtFault{process, Evidence::kExit, std::move(verdict)};
}

std::optional<Finding> Diagnosis::on_carrier_end(bool all_had_finished, const ProcessEnd& end,
                                                 const std::string& carrier, const std::string& last_words,
                                                 TimePoint now) {
  if (end.exit_code == 0 && all_had_finished) return std::nullopt;
  Verdict verdict{ExitCode::kProcessLost, fmt::format("{} {}: {}", carrier, describe(end), last_words)};
  // The carrier ends by itself because a process has ended; none of them kills it.
  if (end.signal) return RunAtFault{std::move(verdict)};
  suspicions_.forget_of_carrier();
  suspicions_.add({std::nullopt, std::move(verdict), now + kExplanationTime});
  return std::nullopt;
}

// Silence is detected well before processes that wait for the silent one pass their own deadlines.
std::optional<Finding> Diagnosis::silence_of(std::size_t process, TimePoint now) const {
  const ProcessPhase phase = roster_.phase(process);
  const bool comes_back = is_coming_back(phase);
  if (!is_there(phase) && !comes_back) return std::nullopt;
  const bool starting = phase == ProcessPhase::kStarting || phase == ProcessPhase::kRestarting;
  const Duration silence = now - roster_[process].last_heard;
  if (silence < (starting ? timeout_ : timeout_ / 2)) return std::nullopt;
  const std::string how =
      starting ? fmt::format("has not said hello for {:.3g} s", seconds(silence)) : "has stopped answering";
  if (comes_back) return HangsBeforeJoining{process, fmt::format("{} {}", roster_.describe(process, now), how)};
  return ProcessAtFault{
      process, Evidence::kSilence,
      verdict_on(process, ExitCode::kTimeout, how + silent_host_text(process, now) + stall_text(now), now)};
}

bool Diagnosis::is_quiet(std::size_t process, TimePoint now) const {
  const ProcessPhase phase = roster_.phase(process);
  return is_there(phase) && phase != ProcessPhase::kStarting && now - roster_[process].last_heard >= timeout_ / 4;
}

std::string Diagnosis::silent_host_text(std::size_t process, TimePoint now) const {
  const ProcessSpec& self = plan_.processes[process];
  std::vector<std::string> names;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    const ProcessSpec& other = plan_.processes[i];
    if (i == process || !self.remote || !other.remote || other.host != self.host || !roster_.still_there(i)) continue;
    if (!is_quiet(i, now)) return {};
    names.push_back(other.name());
  }
  if (names.empty()) return {};
  return fmt::format(", as have all others on its host: {}", fmt::join(names, ", "));
}

std::optional<Finding> Diagnosis::take_due(TimePoint now) {
  std::optional<Suspicion> due = suspicions_.take_due(now);
  if (!due) return std::nullopt;
  if (!due->process) return RunAtFault{std::move(due->verdict)};
  if (due->is_trouble) return LostTouch{*due->process, std::move(due->verdict)};
  return ProcessAtFault{*due->process, Evidence::kReport, std::move(due->verdict)};
}

// Leaving has no deadline of its own, since it lasts as long as the slowest worker trains.
std::optional<Finding> Diagnosis::overdue_worker(TimePoint now) {
  if (!leave_by_ && roster_.all_are_leaving()) leave_by_ = now + kLeaveTimeouts * timeout_;
  const std::optional<std::size_t> chief = roster_.chief();
  if (!leave_by_ || now < *leave_by_ || !chief) return std::nullopt;
  const std::string what =
      fmt::format("has not finished, {:.3g} s after the last step of all workers", seconds(kLeaveTimeouts * timeout_));
  return RunAtFault{verdict_on(*chief, ExitCode::kTimeout, what, now)};
}

std::optional<Finding> Diagnosis::overdue_afterwards(TimePoint now) const {
  if (!end_by_ || now < *end_by_) return std::nullopt;
  const std::string what = fmt::format("has not finished, {:.3g} s after all workers", seconds(timeout_));
  std::optional<std::size_t> evaluator;
  for (std::size_t i = 0; i < roster_.size(); ++i) {
    if (roster_.is_evaluator(i)) evaluator = i;
    if (!serves(plan_.processes[i].role) || !roster_.still_there(i)) continue;
    return RunAtFault{verdict_on(i, ExitCode::kTimeout, what, now)};
  }
  if (!evaluator) return EvaluationsOverdue{};
  return EvaluationsOverdue{evaluator, fmt::format("{} {}; ", roster_.describe(*evaluator, now), what)};
}

void Diagnosis::on_epoch_begins() {
  suspicions_.forget_troubles();
  leave_by_.reset();
}

Duration Diagnosis::notice_absence(TimePoint now) {
  const Duration absence = attention_.absence(now);
  if (absence == Duration::zero()) return absence;
  awake_since_ = now;
  absence_ = absence;
  suspicions_.forgive(absence);
  stalls_.forgive(now);
  if (leave_by_) *leave_by_ += absence;
  if (end_by_) *end_by_ += absence;
  return absence;
}

Verdict Diagnosis::with_absence(Verdict verdict, TimePoint now) const {
  const bool is_of_waits = verdict.code == ExitCode::kTimeout || verdict.code == ExitCode::kProcessLost;
  if (is_of_waits && awake_since_ && now - *awake_since_ < timeout_) {
    verdict.line += fmt::format("; before that, run_experiment itself had not run for {:.1f} s", seconds(absence_));
  }
  return verdict;
}

Verdict Diagnosis::verdict_on(std::size_t process, ExitCode code, const std::string& what, TimePoint now) const {
  return {code, fmt::format("{} {}", roster_.describe(process, now), what)};
}

std::string Diagnosis::stall_text(TimePoint now) const {
  // Silence is judged after half of the timeout; a stall reported since then is more recent.
  const std::optional<std::string> stall = stalls_.stall(timeout_ / 4, now);
  return stall ? "; " + *stall : "";
}

}  // namespace syncopate::experiments

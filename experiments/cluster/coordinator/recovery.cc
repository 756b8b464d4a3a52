#include "experiments/cluster/coordinator/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate::experiments {
namespace {

// How many membership epochs may follow each other without a finished step.
constexpr int kMostEpochsInVain = 8;
// How often in a row a needed server is restarted. There is a pause before the second restart, which doubles each time.
constexpr int kMostRestartsInVain = 6;
constexpr Duration kRestartPause = std::chrono::milliseconds(100);

std::string describe_workers(int count) { return count == 1 ? "1 worker goes" : fmt::format("{} workers go", count); }

}  // namespace

RecoveryPolicy::RecoveryPolicy(const JobPlan& plan, const ProcessRoster& roster, const Recovery& recovery,
                               std::string resume)
    : plan_(plan), roster_(roster), recovery_(recovery), membership_(plan, recovery, std::move(resume)) {}

RecoveryPolicy::Response RecoveryPolicy::on_lost(std::size_t process, RunPhase phase) {
  const bool other_is_empty = training_has_begun(phase) && roster_.other_replica_is_empty(process);
  const Loss loss = membership_.on_lost(process, {.begins = !training_has_begun(phase),
                                                  .can_go_back = !checkpoint_.empty() && !training_is_over(phase),
                                                  .other_replica_is_empty = other_is_empty});
  if (std::optional<std::string> why = why_it_ends(process, loss, other_is_empty, phase)) return EndsRun{*why};
  RunGoesOn goes_on{.consequence = consequence(process, loss), .event = {}};
  if (loss == Loss::kGoBack) goes_on.event = awaits_server() ? RunEvent::kServerAwaited : RunEvent::kGoesBack;
  const bool needs_epoch = loss != Loss::kOthersGoOn || may_wait_for(process);
  goes_on.needs_epoch = needs_epoch && !training_is_over(phase) && !awaits_server();
  goes_on.others_lack_state = !roster_.is_worker(process) && training_is_over(phase);
  return goes_on;
}

std::optional<std::string> RecoveryPolicy::why_it_ends(std::size_t process, Loss loss, bool other_is_empty,
                                                       RunPhase phase) const {
  const bool is_worker = roster_.is_worker(process);
  const bool is_over = training_is_over(phase);
  // Others may have failed, too, and not be lost yet; or they have just joined, and hold nothing.
  const bool nobody_goes_on = is_worker && !is_over && (roster_.live_workers() == 0 || nobody_holds_weights(phase));
  if (loss != Loss::kEndsRun && !nobody_goes_on) {
    const bool others_are_done = !is_worker && !is_over && roster_.any_replica_has_finished();
    if (!others_are_done) return std::nullopt;
    return "; others that serve have finished, and cannot take part in another membership";
  }
  if (other_is_empty) return "; what was to stand in for it has only just come, and may hold nothing yet";
  if (!is_worker || roster_.live_workers() == 0) return "";
  if (!members_within(plan_, process).empty()) return "; what its server held is gone with it";
  return nobody_holds_weights(phase) ? "; nobody who is left holds the weights" : "; this mode needs every worker";
}

bool RecoveryPolicy::may_wait_for(std::size_t process) const {
  return epochs_in_vain_ > 0 && membership_.is_member(process) && !roster_.any_replica_has_finished();
}

bool RecoveryPolicy::nobody_holds_weights(RunPhase phase) const {
  return recovery_.regroups_without_worker && training_has_begun(phase) && roster_.no_worker_trains();
}

std::string RecoveryPolicy::consequence(std::size_t process, Loss loss) const {
  const ProcessSpec& spec = plan_.processes[process];
  if (spec.role == Role::kWorker) return fmt::format("{} on", describe_workers(roster_.live_workers()));
  if (loss == Loss::kGoBack) {
    return (awaits_server() ? "it is started again, and all go back to " : "all go back to ") + checkpoint_;
  }
  const char* const other = spec.role == Role::kServer ? "standby" : "server";
  return fmt::format("{} {} {}", other, spec.rank,
                     spec.role == Role::kServer ? "takes its place" : "goes on without it");
}

RecoveryPolicy::Restart RecoveryPolicy::restart_of(std::size_t process, RunPhase phase, TimePoint now) const {
  const bool is_needed = is_awaited(process);
  if (training_is_over(phase) || (!is_needed && (!is_open(phase) || !recovery_.respawn_after))) return {};
  const int restarts = roster_[process].restarts;
  if (is_needed && restarts >= kMostRestartsInVain) {
    return Verdict{ExitCode::kProcessLost, fmt::format("{} was started again {} times, and has not taken part since",
                                                       plan_.processes[process].name(), restarts)};
  }
  const Duration pause = restarts == 0 ? Duration{} : kRestartPause * (1 << std::min(restarts, kMostRestartsInVain));
  return now + pause + (is_needed ? Duration{} : *recovery_.respawn_after);
}

std::optional<Verdict> RecoveryPolicy::verdict_on_hanging(std::size_t process, const std::string& line) const {
  if (!plan_.processes[process].remote || !is_awaited(process)) return std::nullopt;
  return Verdict{
      ExitCode::kTimeout,
      fmt::format("{}, started again there; on hosts that are left, --resume=auto goes on from {}", line, checkpoint_)};
}

bool RecoveryPolicy::is_awaited(std::size_t process) const {
  return membership_.goes_back() && plan_.processes[process].role == Role::kServer && !membership_.has_replica(process);
}

std::optional<Verdict> RecoveryPolicy::begin_epoch(RunPhase phase) {
  if (++epochs_in_vain_ > kMostEpochsInVain) {
    return Verdict{ExitCode::kTimeout, fmt::format("no step was finished in {} memberships, at step {}",
                                                   kMostEpochsInVain, roster_.furthest_step())};
  }
  membership_.proclaim(!training_has_begun(phase), checkpoint_);
  return std::nullopt;
}

void RecoveryPolicy::on_step() {
  epochs_in_vain_ = 0;
  if (roster_.all_have_stepped_in(membership().number)) membership_.on_all_train();
}

}  // namespace syncopate::experiments

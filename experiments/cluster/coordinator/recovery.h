// RecoveryPolicy: what is done about the loss of a process: whether the run goes on, in which membership epoch, and
// when the process is restarted. Who is at fault is another question (diagnosis.h). Pure.
//
// If a run can recover (config/rules/survival_rules.h), it goes on without a lost process: one that was killed, has
// fallen silent, or has lost touch with the others. The remaining processes may then have to form a new group, a
// membership epoch (membership_policy.h), which is also how a restarted process joins. A run goes on without the
// evaluator in every mode (evaluator_policy.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/clock.h"
#include "experiments/cluster/coordinator/membership_policy.h"
#include "experiments/cluster/coordinator/process_roster.h"
#include "experiments/cluster/coordinator/run_phase.h"
#include "experiments/cluster/coordinator/verdict.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class RecoveryPolicy {
 public:
  // `plan` and `roster` must outlive this. The run resumes from the checkpoint `resume`, if that is not empty.
  RecoveryPolicy(const JobPlan& plan, const ProcessRoster& roster, const Recovery& recovery, std::string resume);

  // The loss ends the run.
  struct EndsRun {
    std::string because;  // follows the verdict on the lost process; may be empty
  };
  // The run survives it.
  struct RunGoesOn {
    std::string consequence;         // for a person; follows the verdict on the lost process
    std::optional<RunEvent> event;   // what it means for the run, if that is more than one process less
    bool needs_epoch = false;        // the others have to form a new membership epoch now
    bool others_lack_state = false;  // workers that still wait for their final weights cannot have them any more
  };
  using Response = std::variant<EndsRun, RunGoesOn>;
  // What to do about the loss of this worker, server or standby, which is lost in the roster.
  Response on_lost(std::size_t process, RunPhase phase);

  // Returns whether the mode goes on without a process that has reported that it cannot.
  bool survives_reports() const { return recovery_.survives_workers; }

  // When a process that is gone is to be restarted: none if it is not; or the verdict that it was restarted in vain.
  // One that ends repeatedly is restarted after ever longer pauses.
  using Restart = std::variant<std::monostate, TimePoint, Verdict>;
  Restart restart_of(std::size_t process, RunPhase phase, TimePoint now) const;

  // Returns the verdict where a server that all wait for, to go back, was restarted on another host and does not come
  // up: `line` says so. Nothing has come from that host for longer than the others wait for a new membership epoch.
  std::optional<Verdict> verdict_on_hanging(std::size_t process, const std::string& line) const;

  // A lost process takes part again, in the next membership epoch.
  void on_admitted(std::size_t process) { membership_.on_ready(process); }
  // Begins a membership epoch of the processes that are there. Returns a verdict if too many have been formed in vain.
  std::optional<Verdict> begin_epoch(RunPhase phase);
  // A worker has finished a step in the current membership epoch, and the roster knows.
  void on_step();
  // A checkpoint is complete, to which all could go back.
  void on_checkpoint(const std::string& folder) { checkpoint_ = folder; }

  const MembershipEpoch& membership() const { return membership_.current(); }
  bool is_member(std::size_t process) const { return membership_.is_member(process); }
  // Returns whether all are to go back, and cannot yet, because a shard has no replica.
  bool awaits_server() const { return membership_.goes_back() && !membership_.has_all_replicas(); }

 private:
  using Loss = MembershipPolicy::Loss;

  // Returns none if the run goes on. Else returns the text that follows the verdict on the lost process.
  // `other_is_empty`: the other replica of a server's or a standby's shards is there, and may hold nothing.
  std::optional<std::string> why_it_ends(std::size_t process, Loss loss, bool other_is_empty, RunPhase phase) const;
  // Returns whether it is a server without which all cannot go back to a checkpoint.
  bool is_awaited(std::size_t process) const;
  // Returns, for a mode in which workers hold the weights, whether all that are left have joined since training began
  // and finished no step.
  bool nobody_holds_weights(RunPhase phase) const;
  // Returns whether the others may be waiting for it to connect: nobody has finished a step in the membership epoch
  // that it is a member of.
  bool may_wait_for(std::size_t process) const;
  std::string consequence(std::size_t process, Loss loss) const;

  const JobPlan& plan_;
  const ProcessRoster& roster_;
  const Recovery recovery_;
  MembershipPolicy membership_;
  std::string checkpoint_;  // the newest complete one
  int epochs_in_vain_ = 0;  // since any worker has finished a step
};

}  // namespace syncopate::experiments

// RunMonitor: decides what becomes of a run. A state machine, and pure: it receives events with their times, and
// returns actions. The phases of the run and of its processes, with what leads from each to the next, are in
// run_phase.h and process_phase.h; README.md draws them.
//
// A run ends in success or in one verdict. Diagnosis says who is at fault, RecoveryPolicy what is done about it; here
// the two meet, and what they say becomes phases and actions. A worker that finds its data or its program wrong ends
// the run in every mode, since the others have the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/cluster/coordinator/diagnosis.h"
#include "experiments/cluster/coordinator/evaluator_policy.h"
#include "experiments/cluster/coordinator/monitor_action.h"
#include "experiments/cluster/coordinator/process_roster.h"
#include "experiments/cluster/coordinator/recovery.h"
#include "experiments/cluster/coordinator/run_phase.h"
#include "experiments/cluster/coordinator/verdict.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class RunMonitor {
 public:
  struct Options {
    Recovery recovery = {};
    Duration timeout = std::chrono::seconds(30);
    // For workers that wait for others in a collective operation; a stall after its warning time is reported.
    StallInspector::Options stalls = {};
    std::string resume = {};  // the checkpoint that the run resumes from
    // Weights that may wait to be evaluated, in bytes. Beyond that snapshots are left out, but two may always wait.
    std::size_t evaluation_backlog = std::size_t{256} << 20;
    bool has_target = false;  // training is to end at an accuracy
  };

  // `plan` must outlive the monitor. The run begins `now`.
  RunMonitor(const JobPlan& plan, const Options& options, TimePoint now);

  // Events. `process` is an index into the plan's processes.
  void on_hello(std::size_t process, std::int64_t pid, const std::string& host, TimePoint now);
  void on_heard(std::size_t process, TimePoint now) { roster_.on_heard(process, now); }
  void on_heartbeat(std::size_t process, const std::string& operation, std::int64_t step,
                    const std::optional<CollectiveReport>& collective, TimePoint now);
  // The process asks to take part in another membership epoch than the one it knows, for the first time or again.
  void on_join_request(std::size_t process, TimePoint now);
  // The process has lost touch with others in membership epoch `membership_epoch`, and could go on in another.
  void on_trouble(std::size_t process, std::int64_t membership_epoch, const Status& status,
                  const std::string& operation, std::int64_t step, TimePoint now);
  // At server `process`, others have waited this long for pushes of worker `rank` in membership epoch
  // `membership_epoch`: that worker is lost.
  void on_missing(std::size_t process, std::int64_t membership_epoch, int rank, Duration waited, TimePoint now);
  void on_ready_to_train(std::size_t process, TimePoint now);
  // A worker has finished a step, its `steps_done`-th, in membership epoch `membership_epoch`. If that is the current
  // one, the worker has the same state as the others, and so has each replica of each shard, since the step has gone
  // through all of them.
  void on_step_finished(std::size_t process, std::int64_t membership_epoch, std::int64_t steps_done);
  // Worker `process` has made its last step. No process may join any more, since the others may have left when it
  // connects; unless all are to go back to before that step.
  void on_leaving(std::size_t process);
  // Worker `process` has the final weights: there are no more membership epochs, and a process that has just joined is
  // not needed, unless it is leaving together with the others.
  void on_training_over(std::size_t process, TimePoint now);
  // A checkpoint is complete, to which all could go back.
  void on_checkpoint(const std::string& folder) { recovery_.on_checkpoint(folder); }
  // A snapshot to evaluate has arrived: that of a point, or the final weights.
  void on_snapshot(std::int64_t point, bool final, std::size_t bytes) { evaluator_.on_snapshot(point, final, bytes); }
  // Returns false if no snapshot waited for this evaluation: a lost evaluator may have sent it before, for example.
  bool on_evaluation(std::int64_t point, bool final, TimePoint now);
  void on_finished(std::size_t process, TimePoint now);
  void on_failure(std::size_t process, const Status& status, const std::string& operation, std::int64_t step,
                  TimePoint now);
  void on_end(std::size_t process, const ProcessEnd& end, TimePoint now);
  // The child that carries the processes `carried` (mpirun) has ended.
  void on_carrier_end(const std::vector<std::size_t>& carried, const ProcessEnd& end, const std::string& carrier,
                      const std::string& last_words, TimePoint now);
  // The results cannot be written.
  void on_output_failure(const Status& status, TimePoint now);
  // Something in the run is not a finite number, and it is to end then.
  void on_not_finite(const std::string& line, TimePoint now) {
    if (!stopping()) conclude({ExitCode::kNotFinite, line}, now);
  }
  void on_interrupt(TimePoint now);
  // The run was asked to end, and its last checkpoint, after `step` steps, is complete.
  void on_last_checkpoint(std::int64_t step, TimePoint now);
  // Returns how long the coordinator has not looked until now, if that was longer than it should be. That much silence
  // is forgiven to all processes. Call it before the events that have arrived meanwhile.
  Duration notice_absence(TimePoint now);
  // Time has passed. Call it at least about every 100 ms.
  void on_tick(TimePoint now);

  // Returns the actions to carry out, in order, and empties the list.
  std::vector<MonitorAction> take_actions();

  RunPhase phase() const { return phase_; }
  ProcessPhase phase(std::size_t process) const { return roster_.phase(process); }
  // Returns whether every process has ended, and none will be restarted.
  bool over() const { return roster_.all_have_ended() && (stopping() || !roster_.any_awaits_restart()); }
  bool stopping() const { return is_stopping(phase_); }
  const MembershipEpoch& membership() const { return recovery_.membership(); }
  bool is_member(std::size_t process) const { return recovery_.is_member(process); }
  // If the run was interrupted, it says how many steps are on record; more may come in while the run stops.
  std::optional<Verdict> verdict() const;
  // Returns the worker that takes snapshots: the lowest rank still there, if any.
  std::optional<std::size_t> chief() const { return roster_.chief(); }
  // Returns whether workers should take snapshots: not while too many wait to be evaluated. Reports the first time that
  // this happens.
  bool wants_snapshots();
  // Returns whether there is an evaluator, or will be again.
  bool evaluates() const { return evaluator_.evaluates(); }
  const EvaluationBacklog& evaluations() const { return evaluator_.backlog(); }
  // Returns whether it has neither finished nor failed, and has not been given up.
  bool still_there(std::size_t process) const { return roster_.still_there(process); }
  // Returns whether it is still there, and was there when training began, or has finished a step since it was started.
  bool trains(std::size_t process) const { return roster_.trains(process); }

 private:
  // The only way from one phase of the run to another.
  void enter(RunEvent event) { phase_ = kRunTransitions.next(phase_, event); }
  void act(MonitorAction action) { actions_.push_back(std::move(action)); }
  void note(std::size_t process, const std::string& operation, std::int64_t step, TimePoint now);

  // From diagnosis to recovery.
  void respond(const Finding& finding, TimePoint now);
  void respond_to(const ProcessAtFault& fault, TimePoint now);
  void respond_to(const LostTouch& fault, TimePoint now);
  void respond_to(const HangsBeforeJoining& fault, TimePoint now);
  void respond_to(const RunAtFault& fault, TimePoint now);
  void respond_to(const EvaluationsOverdue& fault, TimePoint now);

  // A process is lost to the run: either the run goes on without it, or this becomes the verdict.
  void lose(std::size_t process, const Verdict& verdict, TimePoint now);
  void go_on_without(std::size_t process, const RecoveryPolicy::RunGoesOn& response, TimePoint now);
  // The same for the evaluator, without which the run goes on.
  void lose_evaluator(std::size_t process, const Verdict& verdict, TimePoint now);
  // Stops waiting for it.
  void give_up_evaluator(std::size_t process);
  // Gives up all workers that are there and for which this holds. They are not needed any more.
  template <typename Predicate>
  void give_up_workers(Predicate&& is_given_up);
  // Restarts a process that is gone, if it is needed: it must have ended, since there is only one of each.
  void plan_restart(std::size_t process, TimePoint now);
  void restart_what_is_due(TimePoint now);
  // Begins a membership epoch of those that are there, unless too many have been formed in vain.
  void begin_epoch(TimePoint now);
  void release_training_if_all_ready();

  // How a run ends.
  std::string interrupted_text() const;
  void stop_if_all_done(TimePoint now);
  // All is done. Reports, after `why`, which evaluations are missing, if any.
  void end_well(const std::string& why, TimePoint now);
  void conclude(const Verdict& verdict, TimePoint now);
  void begin_stopping(RunEvent event, const std::string& reason, TimePoint now);
  void kill_all();

  const JobPlan& plan_;
  const Options options_;
  RunPhase phase_ = RunPhase::kGathering;
  ProcessRoster roster_;
  Diagnosis diagnosis_;
  RecoveryPolicy recovery_;
  EvaluatorPolicy evaluator_;
  std::vector<MonitorAction> actions_;
  std::optional<Verdict> verdict_;
  std::int64_t steps_on_record_ = 0;  // of the worker that has most
  std::string lost_before_training_;  // what became of the first that was lost while all connected; empty: none was
  TimePoint kill_at_{};               // when stopping: processes still there are killed then
  bool reported_backlog_ = false;     // once is enough
};

}  // namespace syncopate::experiments

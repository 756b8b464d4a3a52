// RunMonitor: decides what becomes of a run. Pure: it receives events with their times, and returns actions.
//
// A run ends in success or in one verdict. If it can recover (config/rules/survival_rules.h), it goes on without a lost
// process: one that was killed, has fallen silent, or has lost touch with the others. The remaining processes may then
// have to form a new group, a membership epoch (generation_course.h), which is also how a restarted process joins. A
// worker that finds its data or its program wrong ends the run in every mode, since the others have the same. A run
// goes on without the evaluator in every mode (evaluator_course.h).
//
// A verdict names the process at the root of the failure: one that was killed or has fallen silent rather than those
// that noticed it. Reports of lost peers and passed deadlines are therefore kept for a moment, until they are
// explained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/cluster/control/attention.h"
#include "experiments/cluster/coordinator/evaluator_course.h"
#include "experiments/cluster/coordinator/generation_course.h"
#include "experiments/cluster/coordinator/process_roster.h"
#include "experiments/cluster/coordinator/stall_inspector.h"
#include "experiments/cluster/coordinator/suspicions.h"
#include "experiments/cluster/coordinator/verdict.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

struct MonitorAction {
  enum class Kind {
    kStopAll,          // ask every process that is still there to stop; `text` is the reason, empty if all is done
    kKill,             // SIGKILL to process `process`
    kWorkerLost,       // tell all servers that worker `rank` is lost
    kReleaseTraining,  // answer every worker that has asked for the first epoch
    kStart,            // restart process `process`
    kProclaim,         // send generation() to all
    kWorkerJoined,     // worker `rank`, which was lost, takes part again
    kReport,           // show `text` to the user; the run goes on
  };
  Kind kind;
  std::size_t process = 0;  // index in the plan
  int rank = 0;
  std::string text;
};

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
  void on_heard(std::size_t process, TimePoint now);
  void on_heartbeat(std::size_t process, const std::string& operation, std::int64_t step,
                    const std::optional<CollectiveReport>& collective, TimePoint now);
  // The process asks to take part in another membership epoch than the one it knows, for the first time or again.
  void on_join_request(std::size_t process, TimePoint now);
  // The process has lost touch with others in membership epoch `generation`, and could go on in another.
  void on_trouble(std::size_t process, std::int64_t generation, const Status& status, const std::string& operation,
                  std::int64_t step, TimePoint now);
  // At server `process`, others have waited this long for pushes of worker `rank` in membership epoch `generation`:
  // that worker is lost.
  void on_missing(std::size_t process, std::int64_t generation, int rank, Duration waited, TimePoint now);
  void on_ready_to_train(std::size_t process, TimePoint now);
  // A worker has finished a step in membership epoch `generation`. If that is the current one, the worker has the same
  // state as the others, and so has each replica of each shard, since the step has gone through all of them.
  void on_step_finished(std::size_t process, std::int64_t generation);
  // Worker `process` has made its last step. No process may join any more, since the others may have left when it
  // connects; unless all are to go back to before that step.
  void on_leaving(std::size_t process);
  // Worker `process` has the final weights: there are no more membership epochs, and a process that has just joined is
  // not needed.
  void on_training_over(std::size_t process, TimePoint now);
  // A checkpoint is complete, to which all could go back.
  void on_checkpoint(const std::string& folder) { checkpoint_ = folder; }
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
  void on_interrupt(TimePoint now);
  // Returns how long the coordinator has not looked until now, if that was longer than it should be. That much silence
  // is forgiven to all processes. Call it before the events that have arrived meanwhile.
  Duration notice_absence(TimePoint now);
  // Time has passed. Call it at least about every 100 ms.
  void on_tick(TimePoint now);

  // Returns the actions to carry out, in order, and empties the list.
  std::vector<MonitorAction> take_actions();

  // Returns whether every process has ended, and none will be restarted.
  bool over() const { return roster_.all_have_ended() && (stopping_ || restarts_.empty()); }
  bool stopping() const { return stopping_; }
  const Generation& generation() const { return course_.current(); }
  bool is_member(std::size_t process) const { return course_.is_member(process); }
  const std::optional<Verdict>& verdict() const { return verdict_; }
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
  using State = ProcessRoster::State;
  using Loss = GenerationCourse::Loss;
  struct Restart {
    std::size_t process = 0;
    TimePoint at{};
  };

  void note(std::size_t process, const std::string& operation, std::int64_t step, TimePoint now);
  // Returns "; stalled for ...", if that explains a passed deadline.
  std::string stall_text(TimePoint now) const;
  // A process is lost to the run: either the run goes on without it, or this becomes the verdict.
  void lose(std::size_t process, Verdict verdict, TimePoint now);
  // The same for the evaluator, without which the run goes on.
  void lose_evaluator(std::size_t process, const Verdict& verdict, TimePoint now);
  void start_evaluator_later(std::size_t process, TimePoint now);
  void on_evaluator_end(std::size_t process, const ProcessEnd& end, TimePoint now);
  // Stops waiting for it.
  void give_up_evaluator(std::size_t process);
  // Returns none if the run goes on. Else returns the text that follows the verdict on the lost process, which may be
  // empty. `other_is_empty`: the other replica of a server's or a standby's shards is there, and may hold nothing.
  std::optional<std::string> why_it_ends(std::size_t process, Loss loss, bool other_is_empty) const;
  void go_on_without(std::size_t process, Loss loss, TimePoint now);
  // Returns whether all are to go back, and cannot yet, because a shard has no replica.
  bool waits_for_homes() const { return course_.goes_back() && !course_.has_all_homes(); }
  // A replica of shards is lost once some worker has the final weights: gives up the workers that still wait for
  // theirs.
  void give_up_who_lacks_final_weights();
  void give_up(std::size_t worker);
  // Returns, for a mode in which workers hold the weights, whether all that are left have joined since training began
  // and finished no step.
  bool nobody_holds_weights() const;
  // Returns the text about a loss that the run survives.
  std::string consequence(std::size_t process, Loss loss) const;
  void start_again_later(std::size_t process, TimePoint now);
  void start_what_is_due(TimePoint now);
  // Forms a new membership epoch of the present members, unless too many have been formed in vain.
  void regroup(TimePoint now);
  void judge_silence(TimePoint now);
  void judge_suspicions(TimePoint now);
  void judge_leaving(TimePoint now);
  void judge_stragglers(TimePoint now);
  // Returns whether its carrier ended the process because a sibling has given up, which is not a cause.
  bool died_of_a_sibling(const ProcessEnd& end) const;
  void kill_all();
  void conclude(Verdict verdict, TimePoint now);
  void begin_stopping(const std::string& reason, TimePoint now);
  void release_training_if_all_ready();
  void stop_if_all_done(TimePoint now);
  // All is done. Reports, after `why`, which evaluations are missing, if any.
  void end_well(const std::string& why, TimePoint now);

  const JobPlan& plan_;
  const Options options_;
  GenerationCourse course_;
  ProcessRoster roster_;
  StallInspector stalls_;
  std::vector<MonitorAction> actions_;
  std::optional<Verdict> verdict_;
  Suspicions suspicions_;
  std::vector<Restart> restarts_;
  std::string checkpoint_;    // the newest complete one
  int regroups_in_vain_ = 0;  // since any worker has finished a step
  bool is_closed_ = false;    // no process may join any more
  bool training_over_ = false;
  bool training_released_ = false;
  bool stopping_ = false;
  bool killed_all_ = false;
  TimePoint kill_at_{};                // when stopping: processes still there are killed then
  std::optional<TimePoint> leave_by_;  // set once all workers have made their last step: when they must have finished
  std::optional<TimePoint> end_by_;    // set once they have: when the others must have ended, too
  Attention attention_;
  std::optional<TimePoint> awake_since_;  // the end of the last absence
  Duration absence_{};
  EvaluatorCourse evaluator_;
  // set once it is lost: the pause before it is restarted, after it has ended
  std::optional<Duration> evaluator_pause_;
  bool reported_backlog_ = false;
};

}  // namespace syncopate::experiments

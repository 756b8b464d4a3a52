// RunMonitor: decides what becomes of a run. Pure: it is told what happened and when, and says what is to be done.
//
// A run ends in success, in one verdict, or, where it can recover (config/survival_rules.h), goes on without a lost
// process: one that was killed, has fallen silent, or has lost touch with the others. Whoever stays then may have to
// form a group anew, a generation (generation_course.h), which is also how a process that was started again comes in. A
// worker that finds its data or its program wrong ends the run in every mode, since the others have the same. Without
// the evaluator a run goes on in every mode (evaluator_course.h).
//
// A verdict names the process at the root of the failure: one that was killed or has fallen silent rather than those
// that noticed it, which is why reports of lost peers and passed deadlines are given a moment to be explained.
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
    kReleaseTraining,  // answer everybody who has asked for the first epoch
    kStart,            // start process `process` again
    kProclaim,         // tell all that generation() is now
    kWorkerJoined,     // worker `rank`, which was lost, takes part again
    kReport,           // show `text` to the person: the run goes on
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
    // Of workers that wait for others in a collective operation; its warning is reported.
    StallInspector::Options stalls = {};
    std::string resume = {};  // a checkpoint that the run goes on from
    // Weights that may wait to be evaluated, in bytes: beyond that snapshots are left out. Two may wait in any case.
    std::size_t evaluation_backlog = std::size_t{256} << 20;
    bool has_target = false;  // training is to end with an accuracy
  };

  // `plan` must outlive the monitor. The run begins `now`.
  RunMonitor(const JobPlan& plan, const Options& options, TimePoint now);

  // What happened. `process` is an index into the plan's processes.
  void on_hello(std::size_t process, std::int64_t pid, const std::string& host, TimePoint now);
  void on_heard(std::size_t process, TimePoint now);
  void on_heartbeat(std::size_t process, const std::string& operation, std::int64_t step,
                    const std::optional<CollectiveReport>& collective, TimePoint now);
  // It wants to take part in another generation than it has been told of, for the first time or again.
  void on_join_request(std::size_t process, TimePoint now);
  // It has lost touch with others in generation `generation`, and would go on in another.
  void on_trouble(std::size_t process, std::int64_t generation, const Status& status, const std::string& operation,
                  std::int64_t step, TimePoint now);
  // At server `process` others have waited for pushes of worker `rank` so long, in generation `generation`: it is lost.
  void on_missing(std::size_t process, std::int64_t generation, int rank, Duration waited, TimePoint now);
  void on_ready_to_train(std::size_t process, TimePoint now);
  // A worker has finished a step in generation `generation`. If that is this one, it has all that the others have, and
  // so has each home of each shard, since the step has gone through all of them.
  void on_step_finished(std::size_t process, std::int64_t generation);
  // Worker `process` has made its last step: nobody comes in any more, lest the others have left when it connects;
  // unless all are to go back to before that.
  void on_leaving(std::size_t process);
  // Worker `process` has the final weights: there are no more generations, and who has just come is not needed.
  void on_training_over(std::size_t process, TimePoint now);
  // A checkpoint is complete, to which all could go back.
  void on_checkpoint(const std::string& folder) { checkpoint_ = folder; }
  // One has come that is to be evaluated: of a point, or the final weights.
  void on_snapshot(std::int64_t point, bool final, std::size_t bytes) { evaluator_.on_snapshot(point, final, bytes); }
  // False where nothing waited for it: an evaluator that was lost has evaluated it before, say.
  bool on_evaluation(std::int64_t point, bool final, TimePoint now);
  void on_finished(std::size_t process, TimePoint now);
  void on_failure(std::size_t process, const Status& status, const std::string& operation, std::int64_t step,
                  TimePoint now);
  void on_end(std::size_t process, const ProcessEnd& end, TimePoint now);
  // What carries the processes `carried` (mpirun) has ended.
  void on_carrier_end(const std::vector<std::size_t>& carried, const ProcessEnd& end, const std::string& carrier,
                      const std::string& last_words, TimePoint now);
  // The results cannot be written.
  void on_output_failure(const Status& status, TimePoint now);
  void on_interrupt(TimePoint now);
  // For how long nobody has looked until now, if that was longer than it should be, which is then forgiven to all: time
  // that nobody had is not silence. To be called before what has come meanwhile is told.
  Duration notice_absence(TimePoint now);
  // Time has passed. To be called at least about every 100 ms.
  void on_tick(TimePoint now);

  // What is to be done, in order. Empties the list.
  std::vector<MonitorAction> take_actions();

  // Every process has ended, and none is started again.
  bool over() const { return roster_.all_have_ended() && (stopping_ || restarts_.empty()); }
  bool stopping() const { return stopping_; }
  const Generation& generation() const { return course_.current(); }
  bool is_member(std::size_t process) const { return course_.is_member(process); }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  // The worker that takes snapshots: the lowest rank still there, if any.
  std::optional<std::size_t> chief() const { return roster_.chief(); }
  // Whether snapshots are to be taken: not while too many others wait to be evaluated. Reports the first time that they
  // are not.
  bool wants_snapshots();
  // There is an evaluator, or will be again.
  bool evaluates() const { return evaluator_.evaluates(); }
  const EvaluationBacklog& evaluations() const { return evaluator_.backlog(); }
  // It has neither finished nor failed, and has not been given up.
  bool still_there(std::size_t process) const { return roster_.still_there(process); }
  // It is, and was there when training began, or has finished a step since it was started.
  bool trains(std::size_t process) const { return roster_.trains(process); }

 private:
  using State = ProcessRoster::State;
  using Loss = GenerationCourse::Loss;
  struct Restart {
    std::size_t process = 0;
    TimePoint at{};
  };

  void note(std::size_t process, const std::string& operation, std::int64_t step, TimePoint now);
  // "; stalled for ...", where that explains a deadline.
  std::string stall_text(TimePoint now) const;
  // A process is of no more use to the run: either the run goes on without it, or this is the verdict.
  void lose(std::size_t process, Verdict verdict, TimePoint now);
  // The same of the evaluator, without which the run goes on.
  void lose_evaluator(std::size_t process, const Verdict& verdict, TimePoint now);
  void start_evaluator_later(std::size_t process, TimePoint now);
  void on_evaluator_end(std::size_t process, const ProcessEnd& end, TimePoint now);
  // It is not waited for any more.
  void give_up_evaluator(std::size_t process);
  // None: the run goes on. Else what is to be said of that behind the verdict on the lost process, perhaps nothing.
  // `other_is_empty`: of a server or a standby, the other one is there, and may hold nothing yet.
  std::optional<std::string> why_it_ends(std::size_t process, Loss loss, bool other_is_empty) const;
  void go_on_without(std::size_t process, Loss loss, TimePoint now);
  // All go back, and cannot before each shard has a home again.
  bool waits_for_homes() const { return course_.goes_back() && !course_.has_all_homes(); }
  // A home of shards is lost once some worker has the final weights: who still waits for its own is not needed.
  void give_up_who_lacks_final_weights();
  void give_up(std::size_t worker);
  // Where workers hold the weights themselves: all that are left have come since training began, and finished no step.
  bool nobody_holds_weights() const;
  // What is said of a loss that the run goes on after.
  std::string consequence(std::size_t process, Loss loss) const;
  void start_again_later(std::size_t process, TimePoint now);
  void start_what_is_due(TimePoint now);
  // The members as they are now make a new generation, unless there have been too many in vain.
  void regroup(TimePoint now);
  void judge_silence(TimePoint now);
  void judge_suspicions(TimePoint now);
  void judge_leaving(TimePoint now);
  void judge_stragglers(TimePoint now);
  // Its carrier ends a process whose sibling has given up: that is no cause.
  bool died_of_a_sibling(const ProcessEnd& end) const;
  void kill_all();
  void conclude(Verdict verdict, TimePoint now);
  void begin_stopping(const std::string& reason, TimePoint now);
  void release_training_if_all_ready();
  void stop_if_all_done(TimePoint now);
  // All is done. Says which evaluations are missing, if any, behind `why`.
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
  std::string checkpoint_;    // the newest that is complete
  int regroups_in_vain_ = 0;  // since anybody has finished a step
  bool is_closed_ = false;    // to who comes
  bool training_over_ = false;
  bool training_released_ = false;
  bool stopping_ = false;
  bool killed_all_ = false;
  TimePoint kill_at_{};                // when stopping: patience ends
  std::optional<TimePoint> leave_by_;  // once all workers have made their last step: when they must have finished
  std::optional<TimePoint> end_by_;    // once they have: when the rest must have, too
  Attention attention_;
  std::optional<TimePoint> awake_since_;  // the end of the last absence
  Duration absence_{};
  EvaluatorCourse evaluator_;
  std::optional<Duration> evaluator_pause_;  // once it is lost: before it is started again, when it has ended
  bool reported_backlog_ = false;
};

}  // namespace syncopate::experiments

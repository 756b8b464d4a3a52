// Diagnosis: who is at fault when a run does not go as it should: from exits, silence, reports, stalls and passed
// deadlines. What is then done about it is another question (recovery.h). Pure: it receives evidence with its time.
//
// It names the process at the root of a failure: one that was killed or has fallen silent rather than those that
// noticed it. Reports of lost peers and passed deadlines are therefore kept for a moment, until they are explained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/cluster/control/attention.h"
#include "experiments/cluster/coordinator/process_roster.h"
#include "experiments/cluster/coordinator/stall_inspector.h"
#include "experiments/cluster/coordinator/suspicions.h"
#include "experiments/cluster/coordinator/verdict.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// What a process was found at fault by.
enum class Evidence {
  kExit,     // it has ended before its time
  kSilence,  // nothing has been heard from it
  kMissing,  // others have waited for it in vain, whatever it says of itself
  kReport,   // its own report, which nothing else has explained
};

// This process is at fault: it is lost to the run.
struct ProcessAtFault {
  std::size_t process;
  Evidence evidence;
  Verdict verdict;
};
// This process lives, and has lost touch with others: a new membership epoch would help.
struct LostTouch {
  std::size_t process;
  Verdict verdict;
};
// This process was restarted, and hangs before it takes part.
struct HangsBeforeJoining {
  std::size_t process;
  std::string line;
};
// What no process could be replaced for: wrong data, a carrier that was killed, workers that never finish.
struct RunAtFault {
  Verdict verdict;
};
// Evaluations take too long after the workers are done. The text names the evaluator, if there is one.
struct EvaluationsOverdue {
  std::optional<std::size_t> evaluator;
  std::string text;
};
using Finding = std::variant<ProcessAtFault, LostTouch, HangsBeforeJoining, RunAtFault, EvaluationsOverdue>;

class Diagnosis {
 public:
  // `plan` and `roster` must outlive this. The run begins `now`.
  Diagnosis(const JobPlan& plan, const ProcessRoster& roster, Duration timeout, const StallInspector::Options& stalls,
            TimePoint now);

  // Evidence. Those that return a finding judge at once; others are judged by take_due. The roster already has what the
  // process last reported.

  // Requires a worker that is still there.
  void on_heartbeat(std::size_t worker, const std::optional<CollectiveReport>& collective, TimePoint now);
  // The process has lost touch with others, and could go on in another membership epoch.
  void on_trouble(std::size_t process, const Status& status, TimePoint now);
  // At server `process`, others have waited this long for pushes of worker `rank`.
  std::optional<Finding> on_missing(std::size_t process, int rank, Duration waited, TimePoint now) const;
  // The process, which is not lost, has reported that it cannot go on. `has_trained`: training has begun.
  std::optional<Finding> on_failure(std::size_t process, const Status& status, bool has_trained, TimePoint now);
  // The process, which is not lost, has ended; it was in phase `before`.
  std::optional<Finding> on_exit(std::size_t process, ProcessPhase before, const ProcessEnd& end, TimePoint now);
  // The child that carries processes has ended. `all_had_finished`: so had all that ended with it, well or not.
  std::optional<Finding> on_carrier_end(bool all_had_finished, const ProcessEnd& end, const std::string& carrier,
                                        const std::string& last_words, TimePoint now);

  // What time brings to light.

  std::optional<Finding> silence_of(std::size_t process, TimePoint now) const;
  // Returns whether a process that takes part has left out several heartbeats: an order would hardly reach it.
  bool is_quiet(std::size_t process, TimePoint now) const;
  // Returns and forgets the oldest report that nothing has explained in its time, if any.
  std::optional<Finding> take_due(TimePoint now);
  // Workers that have all made their last step must finish within some timeouts.
  std::optional<Finding> overdue_worker(TimePoint now);
  // Once all workers are done, servers must finish within the timeout, and each evaluation.
  std::optional<Finding> overdue_afterwards(TimePoint now) const;
  // Returns the lines to show about stalls of collective operations.
  std::vector<std::string> take_stall_lines(TimePoint now) { return stalls_.take_lines(now); }

  // Returns whether no report waits for its explanation.
  bool is_settled() const { return suspicions_.empty(); }
  // The process is lost: its reports are obsolete.
  void forget_reports(std::size_t process) { suspicions_.forget(process); }
  // The worker is lost, or has joined again.
  void forget_stalls(std::size_t worker) { stalls_.forget(plan_.processes[worker].rank); }
  // A membership epoch has begun: it helps all that have lost touch, and all come to their last step once more.
  void on_epoch_begins();
  // From `now` on servers have the timeout to finish, and the evaluator for each evaluation.
  void await_the_rest(TimePoint now) { end_by_ = now + timeout_; }

  // Returns how long the coordinator has not looked until now, if that was longer than it should be: all deadlines
  // here have moved by that time.
  Duration notice_absence(TimePoint now);
  // Returns the verdict, which says so if the coordinator's own absence may have caused it.
  Verdict with_absence(Verdict verdict, TimePoint now) const;

 private:
  // Returns ", as have all others on its host: worker 3, server 1", if nothing is heard from that other host any more.
  std::string silent_host_text(std::size_t process, TimePoint now) const;
  Verdict verdict_on(std::size_t process, ExitCode code, const std::string& what, TimePoint now) const;
  // Returns "; stalled for ...", if that explains a passed deadline.
  std::string stall_text(TimePoint now) const;

  const JobPlan& plan_;
  const ProcessRoster& roster_;
  const Duration timeout_;
  StallInspector stalls_;
  Suspicions suspicions_;
  std::optional<TimePoint> leave_by_;  // set once all workers have made their last step: when they must have finished
  std::optional<TimePoint> end_by_;    // set once they are done: when the others must be, too
  Attention attention_;
  std::optional<TimePoint> awake_since_;  // the end of the last absence
  Duration absence_{};
};

}  // namespace syncopate::experiments

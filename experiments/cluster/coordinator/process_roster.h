// ProcessRoster: the phase of each process of a run, and what it last reported. Pure: events are recorded here, and
// queried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/coordinator/process_phase.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class ProcessRoster {
 public:
  struct Entry {
    ProcessPhase phase = ProcessPhase::kStarting;
    std::int64_t stepped_in = -1;           // the last membership epoch in which it has finished a step
    int restarts = 0;                       // since it last took part
    std::optional<Duration> restart_pause;  // of a lost process that has not ended: it is restarted so long after that
    std::optional<TimePoint> restart_at;    // while it awaits its restart
    std::optional<std::int64_t> pid;        // none before it says hello; 0 in a simulated cluster
    std::string host;
    std::string operation = "starting";
    std::int64_t step = 0;
    TimePoint last_heard{};
  };

  // `plan` must outlive the roster. The run begins `now`.
  ProcessRoster(const JobPlan& plan, TimePoint now);

  // The following take an index in the plan.
  std::size_t size() const { return entries_.size(); }
  const Entry& operator[](std::size_t process) const { return entries_[process]; }
  ProcessPhase phase(std::size_t process) const { return entries_[process].phase; }

  // The only way from one phase to another. Returns the phase before.
  ProcessPhase apply(std::size_t process, ProcessEvent event);
  // A worker has finished a step in this membership epoch. It has gone through all servers and standbys that are there:
  // they have the same state as the worker.
  void on_step(std::size_t worker, std::int64_t membership);
  // Training begins: for all workers that are ready, and for all servers and standbys.
  void on_training_begins();
  // A membership epoch begins, in which all connect anew.
  void on_epoch_begins();

  void on_hello(std::size_t process, std::int64_t pid, const std::string& host);
  void on_heard(std::size_t process, TimePoint now) { entries_[process].last_heard = now; }
  void on_report(std::size_t process, const std::string& operation, std::int64_t step);
  // It is lost, and to be restarted this long after it has ended; none: it is not.
  void set_restart_pause(std::size_t process, std::optional<Duration> pause) {
    entries_[process].restart_pause = pause;
  }
  // It is to be restarted at this time. Requires that it is gone.
  void plan_restart(std::size_t process, TimePoint at);
  // It is launched again, and is lost until it is admitted. Requires that it awaits this.
  void on_restart(std::size_t process, TimePoint now);
  // A lost process takes part again.
  void on_admitted(std::size_t process);
  // The coordinator has not listened for this long until `now`: the silence of all was that much shorter.
  void forgive(Duration absence, TimePoint now);

  bool is_worker(std::size_t process) const { return plan_.processes[process].role == Role::kWorker; }
  bool is_evaluator(std::size_t process) const { return plan_.processes[process].role == Role::kEvaluator; }
  // Returns whether it has neither finished nor failed, and has not been given up.
  bool still_there(std::size_t process) const { return is_there(phase(process)); }
  // Returns whether it is still there, and was there when training began, or has finished a step since it was started.
  bool trains(std::size_t process) const { return has_trained(phase(process)); }

  // Returns whether every process has ended.
  bool all_have_ended() const;
  bool any_awaits_restart() const;
  // Returns whether every worker that is still there has asked for the first epoch.
  bool all_are_ready_to_train() const;
  // Returns whether every worker that is still there has made its last step, and there is one.
  bool all_are_leaving() const;
  // Returns whether every worker, and every server and standby, has finished, has ended or is lost.
  bool all_workers_are_done() const;
  bool all_servers_are_done() const;
  // Returns the number of workers, including those that have finished, without others that are not there any more.
  int live_workers() const;
  // Returns the lowest worker that is still there, if any.
  std::optional<std::size_t> chief() const;
  // Returns the furthest step that any worker has reported.
  std::int64_t furthest_step() const;
  // Returns whether no worker is left that was there when training began, or that has finished a step since it joined.
  bool no_worker_trains() const;
  // Returns whether every worker that is there has finished a step in this membership epoch.
  bool all_have_stepped_in(std::int64_t membership) const;
  // Returns whether a server or a standby that was not lost has ended, because its part is done.
  bool any_replica_has_finished() const;
  // Returns whether the other replica of a server's or a standby's shards is there and does not train yet, so that it
  // may hold nothing.
  bool other_replica_is_empty(std::size_t process) const;

  // Returns "worker 1 (host box, pid 4711; backward at step 17, last heard 0.4 s ago)", without a pid that is 0. Of
  // members of one process each says who the others are: "worker 1, with server 1 in its process (host ...".
  std::string describe(std::size_t process, TimePoint now) const;

 private:
  const JobPlan& plan_;
  std::vector<Entry> entries_;
};

}  // namespace syncopate::experiments

// ProcessRoster: what is known of each process of a run: whether it is there, what it last reported, and whether it has
// the state of the training. Pure: events are recorded here, and queried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class ProcessRoster {
 public:
  enum class State { kExpected, kRunning, kFinished, kFailed, kEnded };
  struct Entry {
    State state = State::kExpected;
    bool lost = false;  // given up; the run goes on without it
    bool ready_to_train = false;
    bool trains = false;             // was there when training began, or has finished a step
    bool is_leaving = false;         // a worker that has made its last step
    bool has_final_weights = false;  // a worker that needs nothing more from others
    std::int64_t stepped_in = -1;    // the last membership epoch in which it has finished a step
    int starts = 0;                  // restarts since it last took part
    std::int64_t pid = 0;
    std::string host;
    std::string operation = "starting";
    std::int64_t step = 0;
    TimePoint last_heard{};
  };

  // `plan` must outlive the roster. The run begins `now`.
  ProcessRoster(const JobPlan& plan, TimePoint now);

  // The following take an index in the plan.
  std::size_t size() const { return entries_.size(); }
  Entry& operator[](std::size_t process) { return entries_[process]; }
  const Entry& operator[](std::size_t process) const { return entries_[process]; }

  // The process is about to be restarted, and is lost until it is ready.
  void expect_again(std::size_t process, TimePoint now);
  // The coordinator has not listened for this long until `now`: the silence of all was that much shorter.
  void forgive(Duration absence, TimePoint now);
  // A step has gone through all servers and standbys that are there: they have the same state as the workers.
  void note_homes_train();

  bool is_worker(std::size_t process) const { return plan_.processes[process].role == Role::kWorker; }
  bool is_evaluator(std::size_t process) const { return plan_.processes[process].role == Role::kEvaluator; }
  // Returns whether it has neither finished nor failed, and has not been given up.
  bool still_there(std::size_t process) const;
  bool trains(std::size_t process) const { return still_there(process) && entries_[process].trains; }

  bool all_have_ended() const;
  // Returns whether every worker that is still there has said that it is ready.
  bool all_are_ready_to_train() const;
  // Returns whether every worker that is still there has made its last step, and there is one.
  bool all_are_leaving() const;
  // Returns the number of workers, including those that have finished, without others that are not there any more.
  int live_workers() const;
  // Returns the lowest worker that is still there, if any.
  std::optional<std::size_t> chief() const;
  // Returns the furthest step that any worker has reported.
  std::int64_t furthest_step() const;
  // Returns whether no worker is left that was there when training began, or that has finished a step since it joined.
  bool no_worker_trains() const;
  // Returns whether every worker that is there has finished a step in this membership epoch.
  bool all_have_stepped_in(std::int64_t generation) const;
  // Returns whether a server or a standby that was not lost has ended, because its part is done.
  bool any_home_has_finished() const;
  // Returns whether it was restarted, and has not taken part since.
  bool is_coming_back(std::size_t process) const {
    return entries_[process].lost && entries_[process].starts > 0 && entries_[process].state <= State::kRunning;
  }
  // Returns whether the other replica of a server's or a standby's shards is there and does not train yet, so that it
  // may hold nothing.
  bool other_home_is_empty(std::size_t process) const;

  // Returns "worker 1 (host box, pid 4711; backward at step 17, last heard 0.4 s ago)".
  std::string describe(std::size_t process, TimePoint now) const;

 private:
  const JobPlan& plan_;
  std::vector<Entry> entries_;
};

}  // namespace syncopate::experiments

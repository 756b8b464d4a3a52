// SharedBatches: gives the batches of a job whose workers share them out over the control connection (--work=shared).
// The rule by which they are given out is BatchQueue's.
//
// Used by the coordinator's thread.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/cluster/control/control_server.h"
#include "experiments/cluster/coordinator/batch_queue.h"
#include "experiments/cluster/coordinator/run_monitor.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

class SharedBatches {
 public:
  // `queue` holds all of the job's batches, less those that are done. All other arguments outlive this.
  SharedBatches(const ResolvedRun& config, const JobPlan& plan, BatchQueue queue, const RunMonitor& monitor,
                ControlServer& control)
      : config_(config), plan_(plan), queue_(std::move(queue)), monitor_(monitor), control_(control) {}

  // Answers worker `process`. A request from another membership epoch is not answered: the worker asks again.
  void on_request(std::size_t process, const control::BatchRequest& request);
  // Worker `rank` has trained this batch. It counts once, however often it is reported.
  void on_trained(int rank, std::int64_t batch) { queue_.finish(rank, batch); }
  // What it had drawn and not trained is given out again.
  void on_worker_lost(int rank) { queue_.hold_only(rank, {}); }
  // Training goes back to a checkpoint, whose manifest has this digest; empty: it is not held against one. If it cannot
  // be read, the workers, which also read it, report why.
  void go_back_to(const std::string& checkpoint, const std::string& digest);

  // Returns the number of the job's steps that the workers have made together.
  std::int64_t steps_done() const { return queue_.done() / config_.workers; }
  // Returns a line that says how many batches nobody has trained, in a run that has ended; empty: none.
  std::string untrained() const;

 private:
  const ResolvedRun& config_;
  const JobPlan& plan_;
  BatchQueue queue_;
  const RunMonitor& monitor_;
  ControlServer& control_;
};

}  // namespace syncopate::experiments

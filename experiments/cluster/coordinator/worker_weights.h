// WorkerWeights: handles the weights that workers send. It passes snapshots on to the evaluator, with the mean of what
// the workers' models keep besides them, and takes the final weights from one worker.
//
// Used by the coordinator's thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>
#include <zmq.hpp>

#include "experiments/cluster/control/control_server.h"
#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/cluster/coordinator/final_weights.h"
#include "experiments/cluster/coordinator/replica_means.h"
#include "experiments/cluster/coordinator/run_monitor.h"
#include "experiments/cluster/coordinator/snapshot_relay.h"

namespace syncopate::experiments {

class WorkerWeights {
 public:
  // Local states have `local_state_size` values: none for most models. `means_of` is the number of replicas that agree
  // on nothing before the end; 0: replicas agree. `leave_together`: nobody leaves before all have asked to; not where
  // links are made to hold messages back, which only the end of their sender may let go. `chief_alone`: worker 0 has
  // the final weights, and no other. All other arguments outlive this.
  WorkerWeights(const JobPlan& plan, std::size_t local_state_size, int means_of, bool leave_together, bool chief_alone,
                RunMonitor& monitor, ControlServer& control, RunObserver& observer);

  // Takes a snapshot of `process`. `clock_offset` is added to its stamp to convert it to our clock. If replicas agree
  // on nothing before the end, it waits for the snapshots of all of them and passes on their mean, with the stamp of
  // the last.
  void on_snapshot(std::size_t process, const control::Snapshot& stamp, zmq::message_t weights, Duration clock_offset);
  // Reports and ignores a state that does not have the model's size.
  void on_local_state(std::size_t process, const control::LocalState& state);
  // Training is over at `process`, which asks whether its final weights are wanted.
  void on_finish_question(std::size_t process);
  // A worker is lost: another may have to send the final weights.
  void on_worker_lost() { settle_final(); }
  // Passes on what need not wait any more; it does not wait for workers that have left.
  void pass_on();
  // Sends a new evaluator what the previous one has not evaluated.
  void send_again() { snapshots_.send_again(); }
  void on_evaluated(const control::Snapshot& stamp) { snapshots_.on_evaluated(stamp.point(), stamp.final()); }

 private:
  SnapshotRelay::Hands to_evaluator();
  void settle_final();

  const JobPlan& plan_;
  const std::size_t local_state_size_;
  const bool leave_together_;
  RunMonitor& monitor_;
  ControlServer& control_;
  RunObserver& observer_;
  std::optional<ReplicaMeans> means_;
  SnapshotRelay snapshots_;
  FinalWeights final_;
};

}  // namespace syncopate::experiments

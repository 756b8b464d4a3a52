// WorkerWeights: what workers hand in of their weights: snapshots, which are passed on to the evaluator with the mean
// of what the workers' models keep beside them, and the final ones, of which one worker's are enough.
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
  // Local states have `local_state_size` values: none for most models. `means_of`: so many replicas that agree on
  // nothing before the end; 0: they do. All others outlive this.
  WorkerWeights(const JobPlan& plan, std::size_t local_state_size, int means_of, RunMonitor& monitor,
                ControlServer& control, RunObserver& observer);

  // Of `process`. Its stamp is of a clock to which `clock_offset` is to be added to make it ours. Where replicas agree
  // on nothing before the end, it waits for those of all of them, whose mean is passed on, with the stamp of the last.
  void on_snapshot(std::size_t process, const control::Snapshot& stamp, zmq::message_t weights, Duration clock_offset);
  // One that has another size than the model's is reported and left out.
  void on_local_state(std::size_t process, const control::LocalState& state);
  // Training is over at `process`, which asks whether its final weights are wanted.
  void on_finish_question(std::size_t process);
  // A worker is lost: another may have to hand in the final weights.
  void on_worker_lost() { settle_final(); }
  // Passes on what need not wait any more: for a worker that is gone nobody waits.
  void pass_on();
  // A new evaluator is to have what the one before has not evaluated.
  void send_again() { snapshots_.send_again(); }
  void on_evaluated(const control::Snapshot& stamp) { snapshots_.on_evaluated(stamp.point(), stamp.final()); }

 private:
  SnapshotRelay::Hands to_evaluator();
  void settle_final();

  const JobPlan& plan_;
  const std::size_t local_state_size_;
  RunMonitor& monitor_;
  ControlServer& control_;
  RunObserver& observer_;
  std::optional<ReplicaMeans> means_;
  SnapshotRelay snapshots_;
  FinalWeights final_;
};

}  // namespace syncopate::experiments

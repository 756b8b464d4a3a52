// ControlState: what a process's control thread shares with its other threads. Each part has a mutex of its own, and
// documents when it is held.
#pragma once

#include <atomic>
#include <memory>

#include "common/patience.h"
#include "common/transport/link_faults.h"
#include "experiments/cluster/control/admission.h"
#include "experiments/cluster/control/answer_board.h"
#include "experiments/cluster/control/control_callbacks.h"
#include "experiments/cluster/control/snapshot_queue.h"
#include "experiments/cluster/control/step_batch.h"

namespace syncopate::experiments {

struct ControlState {
  // Makes the state of the process that has this role and rank.
  ControlState(Role role, int rank) : board(role, rank, patience) {}

  const std::shared_ptr<Patience> patience = std::make_shared<Patience>();
  Admission admission;
  AnswerBoard board;
  ControlCallbacks callbacks{board};
  SnapshotQueue snapshots;                    // to evaluate
  std::atomic<bool> wants_snapshots = false;  // whether the coordinator wants them from this worker
  StepBatch steps;                            // to be sent
  const std::shared_ptr<LinkFaults> link_faults = std::make_shared<LinkFaults>();
};

}  // namespace syncopate::experiments

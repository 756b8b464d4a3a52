#include "experiments/cluster/control/message_rules.h"

namespace syncopate::experiments {

bool may_send(Role role, control::ToCoordinator::KindCase kind) {
  using control::ToCoordinator;
  const bool trains = role == Role::kWorker;
  const bool has_peers = trains || serves(role);
  switch (kind) {
    case ToCoordinator::kHello:
    case ToCoordinator::kHeartbeat:
    case ToCoordinator::kClockQuestion:
    case ToCoordinator::kClockReport:
    case ToCoordinator::kFact:
    case ToCoordinator::kFailure:
    case ToCoordinator::kFinished:
      return true;
    case ToCoordinator::kPublish:
    case ToCoordinator::kJoinRequest:
    case ToCoordinator::kTrouble:
    case ToCoordinator::kCheckpointReport:
    case ToCoordinator::kStepAnnouncement:
      return has_peers;
    case ToCoordinator::kSteps:
    case ToCoordinator::kEpochQuestion:
    case ToCoordinator::kSnapshot:
    case ToCoordinator::kLocalState:
    case ToCoordinator::kLeaveQuestion:
    case ToCoordinator::kFinishQuestion:
    case ToCoordinator::kBatchRequest:
      return trains;
    case ToCoordinator::kMissingWorker:
      return serves(role);
    case ToCoordinator::kEvaluation:
      return role == Role::kEvaluator;
    case ToCoordinator::KIND_NOT_SET:
      return false;
  }
  return false;
}

}  // namespace syncopate::experiments

// Converts between the program's records and those of the control protocol.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "allreduce/collective/collective_activity.h"
#include "common/activity.h"
#include "common/server_figures.h"
#include "common/status.h"
#include "common/step_record.h"
#include "common/transport/link_faults.h"
#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/cluster/control/collective_report.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/control/weights_snapshot.h"
#include "worker/not_finite.h"

namespace syncopate::experiments {

// Without the sender's peak memory.
control::Finished to_wire(const ServerFigures& figures);
ServerFigures from_wire(const control::Finished& finished);

control::Collective to_wire(const allreduce::CollectiveState& state);
CollectiveReport from_wire(const control::Collective& collective);

// Includes what the process is doing.
control::Failure to_wire(const Status& status, const Activity& activity);
// Never returns ok: a code that is not one of a failure becomes an internal error that says so.
Status from_wire(const control::Failure& failure);

control::CheckpointReport to_wire(const std::string& writer, const CheckpointReport& report);
// A part that does not parse becomes a report of kFailed.
CheckpointReport from_wire(const control::CheckpointReport& report);

control::ImpairLinks::Fault to_wire(LinkFault fault);
// Returns none for a fault of a later version of this program.
std::optional<LinkFault> from_wire(control::ImpairLinks::Fault fault);

control::NotFinite to_wire(const worker::NotFinite& what);
// Returns none for a quantity of a later version of this program.
std::optional<worker::NotFinite> from_wire(const control::NotFinite& what);

control::MembershipEpoch to_wire(const MembershipEpoch& membership);
MembershipEpoch from_wire(const control::MembershipEpoch& membership);

// Takes the stamp and the row numbers; the weights are sent in a frame of their own.
control::Snapshot to_wire(const WeightsSnapshot& snapshot);
// Returns the snapshot without weights, or with those of their frame.
WeightsSnapshot from_wire(const control::Snapshot& snapshot, std::span<const std::byte> weights = {});
TableKeys rows_of(const control::Snapshot& snapshot);

// Takes only the stamp of the snapshot that was evaluated.
control::Evaluation to_wire(const WeightsSnapshot& evaluated, const EvaluationScores& scores);
EvaluationScores scores_of(const control::Evaluation& evaluation);

}  // namespace syncopate::experiments

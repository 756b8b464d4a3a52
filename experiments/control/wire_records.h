// Between the records of the program and those of the wire.
#pragma once

#include "allreduce/collective_activity.h"
#include "common/step_record.h"
#include "experiments/control/collective_report.h"
#include "experiments/control/control.pb.h"
#include "experiments/control/control_client.h"
#include "experiments/control/generation.h"

namespace syncopate::experiments {

control::Step to_wire(const StepRecord& record);
StepRecord from_wire(const control::Step& step);

control::Collective to_wire(const allreduce::CollectiveState& state);
CollectiveReport from_wire(const control::Collective& collective);

control::CheckpointReport to_wire(const std::string& writer, const CheckpointReport& report);
// A part that does not parse makes it one of kFailed.
CheckpointReport from_wire(const control::CheckpointReport& report);

TestFigures figures_of(const control::Evaluation& evaluation);
TableKeys rows_of(const control::Snapshot& snapshot);

// The stamp and which rows there are; the weights travel in a frame of their own.
control::Generation to_wire(const Generation& generation);
Generation from_wire(const control::Generation& generation);

control::Snapshot to_wire(const WeightsSnapshot& snapshot);
WeightsSnapshot from_wire(const control::Snapshot& snapshot);

}  // namespace syncopate::experiments

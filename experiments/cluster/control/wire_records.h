// Between the records of the program and those of the wire.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "allreduce/collective/collective_activity.h"
#include "common/activity.h"
#include "common/status.h"
#include "common/step_record.h"
#include "experiments/checkpoint/checkpoint_course.h"
#include "experiments/cluster/control/collective_report.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/generation.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/control/weights_snapshot.h"

namespace syncopate::experiments {

control::Step to_wire(const StepRecord& record);
StepRecord from_wire(const control::Step& step);

control::Collective to_wire(const allreduce::CollectiveState& state);
CollectiveReport from_wire(const control::Collective& collective);

// With what the process is doing.
control::Failure to_wire(const Status& status, const Activity& activity);
// Never ok: a code that is none of a failure's makes it an internal error that says so.
Status from_wire(const control::Failure& failure);

control::CheckpointReport to_wire(const std::string& writer, const CheckpointReport& report);
// A part that does not parse makes it one of kFailed.
CheckpointReport from_wire(const control::CheckpointReport& report);

control::Generation to_wire(const Generation& generation);
Generation from_wire(const control::Generation& generation);

// The stamp and which rows there are; the weights travel in a frame of their own.
control::Snapshot to_wire(const WeightsSnapshot& snapshot);
// Without the weights, or with those of their frame.
WeightsSnapshot from_wire(const control::Snapshot& snapshot, std::span<const std::byte> weights = {});
TableKeys rows_of(const control::Snapshot& snapshot);

// Of the snapshot that was evaluated, the stamp alone.
control::Evaluation to_wire(const WeightsSnapshot& evaluated, double accuracy, double loss, const TestFigures& figures);
TestFigures figures_of(const control::Evaluation& evaluation);

}  // namespace syncopate::experiments

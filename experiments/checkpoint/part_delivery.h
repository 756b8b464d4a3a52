// Writes a process's part of a checkpoint, and reports the result.
#pragma once

#include <functional>
#include <stop_token>

#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/checkpoint/part_writer.h"

namespace syncopate::experiments {

using ReportCheckpoint = std::function<void(const CheckpointReport& report)>;

// `options.folder` is the run's folder of checkpoints, in which the attempt has a folder of its own. `report` says
// which checkpoint it is; `tell` receives it once the part is on the disk or has failed. `tell` is not called if `stop`
// is requested, since the run is then over.
void deliver_part(PartOptions options, const StateForms& forms, const TrainingState& state, const std::stop_token& stop,
                  CheckpointReport report, const ReportCheckpoint& tell);

// Reports that a part could not be taken or written.
void tell_failure(CheckpointReport report, const Status& status, const ReportCheckpoint& tell);

}  // namespace syncopate::experiments

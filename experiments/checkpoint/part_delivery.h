// Writes a process's part of a checkpoint, and tells what became of it.
#pragma once

#include <functional>
#include <stop_token>

#include "experiments/checkpoint/checkpoint_course.h"
#include "experiments/checkpoint/part_writer.h"

namespace syncopate::experiments {

using ReportCheckpoint = std::function<void(const CheckpointReport& report)>;

// `options.folder` is that of the run's checkpoints, in which the attempt has one. `report` says which checkpoint it
// is, and is called by `tell` once the part is on the disk or cannot be; not at all if `stop` asks for it: the run is
// over.
void deliver_part(PartOptions options, const StateForms& forms, const TrainingState& state, const std::stop_token& stop,
                  CheckpointReport report, const ReportCheckpoint& tell);

// It could not be taken or written.
void tell_failure(CheckpointReport report, const Status& status, const ReportCheckpoint& tell);

}  // namespace syncopate::experiments

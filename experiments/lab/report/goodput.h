// Goodput: of the time that a job asked for, which is its workers x the time from the first step's begin to the last
// one's end, the share in which workers computed (forward, backward, their own update) for steps that the weights have
// learnt from. Pure.
//
// It is the ML Productivity Goodput of Google (Singh and Herrington 2024; cloud.google.com/tpu/docs/goodput), the share
// of time that made productive progress which was preserved, for workers that may be lost one by one. What that calls
// badput is here: waits for a batch, for others and for a straggler's delays; what was computed for steps that were
// undone, skipped or dropped; whatever lies between two steps (the detection of a loss, a restart, a checkpoint); and
// all time of a worker that is gone. Communication costs what compute does not hide: the exposed wait. A wait for a
// core within forward or backward counts as compute, since only some systems can tell it.
#pragma once

#include <optional>
#include <span>

#include "experiments/lab/report/steady_window.h"

namespace syncopate::experiments {

// `workers` are all that the job asked for, with or without steps; `training_seconds` is the time from the first step's
// begin to the last one's end. Returns 0 to 1; none without a step, and where no step says what it computed, as a
// program of the person's own may not.
//
// Records do not tell everything. The steps that a killed worker had not reported yet (those of the last 200 ms in a
// job of 100 workers, records_interval.h) count as lost. The steps that a worker which does not come back made by
// itself since its last meeting (local-sgd, easgd), or since a checkpoint to which all others go back, count as kept.
std::optional<double> goodput(std::span<const WorkerSteps> workers, double training_seconds);

}  // namespace syncopate::experiments

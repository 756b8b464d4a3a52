// Charts of a run's steps: where their time went, what was sent, how stale gradients were. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/run_page/reported_run.h"

namespace syncopate::experiments {

// The mean step of each worker by its parts, over its steps beyond the warm-up.
BarChart split_chart(const ReportedRun& run);

// From the ideal step to the measured one.
BarChart waterfall_chart(const ReportedRun& run);

// How many steps had which staleness; nothing to draw where none was stale.
BarChart staleness_chart(const ReportedRun& run);
// What the losses of their batches were above the mean of their epoch; nothing to draw where none was stale.
Chart staleness_loss_chart(const ReportedRun& run);

// What each worker and server sent and received.
BarChart bytes_chart(const ReportedRun& run);

// The parts of some steps of all workers, from the moment on when all are beyond their warm-up.
BarChart timeline_chart(const ReportedRun& run);

}  // namespace syncopate::experiments

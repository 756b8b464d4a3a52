// Charts of a run's course: what it learnt, and how fast it was. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/run_page/reported_run.h"
#include "experiments/lab/why/training_pieces.h"

namespace syncopate::experiments {

struct ThroughputPiece {
  double seconds = 0;  // the middle of it, since training began
  double samples_per_second = 0;
};

// Returns the job's throughput in `count` pieces of the same length, from the start of training to the end of its last
// step. A step's samples are spread evenly over the time that it took.
std::vector<ThroughputPiece> throughput_over_time(const RecordedSteps& recorded, std::size_t count);

// Returns loss, quality, and throughput beside what would be ideal. The first two can be switched between time, steps
// and samples.
std::vector<AnyChart> curve_charts(const ReportedRun& run);

}  // namespace syncopate::experiments

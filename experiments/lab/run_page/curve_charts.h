// Charts of a run's course: what it learnt, and how fast it was. Pure.
#pragma once

#include <vector>

#include "experiments/lab/report/chart.h"
#include "experiments/lab/run_page/reported_run.h"

namespace syncopate::experiments {

// A piece of a run's training: means over some steps that ended one after the other, of all workers.
struct TrainingPiece {
  double seconds = 0;  // since training began, when its last step ended
  double steps = 0;    // of all workers, until then
  double samples = 0;
  double loss = 0;  // mean over the piece's steps
};

// Returns at most `most` pieces of the same number of steps. Steps without a loss count, but not in the mean; a piece
// without any loss is left out.
std::vector<TrainingPiece> training_pieces(std::vector<StepRow> steps, std::size_t most);

struct ThroughputPiece {
  double seconds = 0;  // the middle of it, since training began
  double samples_per_second = 0;
};

// Returns the job's throughput in `count` pieces of the same length, from the start of training to the end of its last
// step. A step's samples are spread evenly over the time that it took.
std::vector<ThroughputPiece> throughput_over_time(const std::vector<StepRow>& steps, std::size_t count);

// Returns loss, quality, and throughput beside what would be ideal. The first two can be switched between time, steps
// and samples.
std::vector<AnyChart> curve_charts(const ReportedRun& run);

}  // namespace syncopate::experiments

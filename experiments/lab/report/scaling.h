// Scaling: what more workers bring, where a comparison varies their number. Pure.
//
// The measure is one worker alone, which sends nothing: a row of allreduce with one worker whose other values a curve
// shares. A curve for which there is none is held against its own row with the fewest workers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_report.h"
#include "experiments/lab/report/paired_comparison.h"

namespace syncopate::experiments {

struct ScalingPoint {
  std::size_t row = 0;
  double workers = 0;
  // The ratio of samples/s to those of the measure, by round where rounds pair them; of the measure itself 1, without
  // pairs.
  Difference speedup;
  // Speed-up over the factor by which there are more workers: 1 where each brings as much as the measure's.
  double efficiency = 0;
};

struct ScalingCurve {
  std::string name;                  // "ps:sync servers=2"
  std::size_t measure = 0;           // the row that it is held against
  double measure_workers = 1;        // of that row
  std::vector<ScalingPoint> points;  // by workers, at least two
};

// Returns a curve for each mode, and each combination of the other varied options, that has run with two numbers of
// workers or more. Empty unless workers are varied.
std::vector<ScalingCurve> scaling_of(const ComparisonReport& report);

}  // namespace syncopate::experiments

// What was measured of each way to exchange gradients, carried to other sizes. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/predict/measured_runs.h"
#include "experiments/lab/predict/scaled_job.h"
#include "prediction/scaling_fit.h"

namespace syncopate::experiments {

struct FittedSize {
  int workers = 0;
  prediction::ExchangePlan plan;
  prediction::FittedValue step;    // seconds
  std::optional<double> measured;  // samples/s
};

struct FittedWay {
  // The exchange of a size as plan_name() has it; of one worker that is alone, the way's.
  std::string name_of(const ScaledJob& job, const FittedSize& size) const;
  // The job with the step alone that was fitted, which efficiencies are against.
  ScaledJob fitted_job(const ScaledJob& job) const;

  std::string name;           // as plan_name(), without a number of servers that varies
  std::vector<int> measured;  // sizes, from the least
  prediction::ScalingFit fit;
  std::vector<FittedSize> sizes;  // measured and asked for, from the least
};

// Ways are the exchanges of `runs`, in their order; the steps of one worker belong to each. Servers at other sizes are
// as many as where they were measured if these are all alike, and else as many a worker as at the largest of them.
// Fails where predict_step() does.
Result<std::vector<FittedWay>> fitted_ways(const ScaledJob& job, const std::vector<MeasuredRun>& runs);

}  // namespace syncopate::experiments

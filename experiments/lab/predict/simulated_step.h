// A predicted step beside the same step on the simulated cluster, where strategies, schedules and servers are the real
// ones and links have queues.
#pragma once

#include <optional>

#include "common/status.h"
#include "experiments/config/run_request.h"
#include "experiments/lab/predict/scaled_job.h"
#include "experiments/lab/run/run_job.h"
#include "simulation/network.h"

namespace syncopate::experiments {

// More take longer to simulate than a person waits for a prediction.
inline constexpr int kMostWorkersBesideAPrediction = 64;

// Returns the run of a few steps that is like the plan; none where no mode of this project is: servers on hosts
// of their own beside hosts with several workers, BytePS's optimum on one host, one worker alone, more than the most
// above. Pure.
std::optional<RunRequest> run_like(const ScaledJob& job, int workers, const prediction::ExchangePlan& plan,
                                   simulation::NetworkModel network);

// Simulates it, and returns its result, with one report. Fails with why the run failed.
Result<JobResult> simulated_run(RunRequest request, const JobRunner& run);

// Simulates it and returns the mean step in seconds once all are past the first. Fails with why the run failed.
Result<double> simulated_step(RunRequest request, const JobRunner& run);

}  // namespace syncopate::experiments

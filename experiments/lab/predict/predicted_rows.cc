#include "experiments/lab/predict/predicted_rows.h"

#include "experiments/lab/predict/simulated_step.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;
using prediction::ExchangePlan;
using prediction::Network;

std::vector<ExchangePlan> plans_for(const PredictRequest& request, const Network& network) {
  const double bucket = request.bucket_bytes;
  std::vector<ExchangePlan> plans = {{.exchange = Exchange::kRing, .bucket_bytes = bucket},
                                     {.exchange = Exchange::kTree, .bucket_bytes = bucket},
                                     {.exchange = Exchange::kHalvingDoubling, .bucket_bytes = bucket}};
  // With a worker on each host it is a ring.
  if (network.workers_per_host > 1) plans.push_back({.exchange = Exchange::kHierarchical, .bucket_bytes = bucket});
  plans.insert(
      plans.end(),
      {{.exchange = Exchange::kServers, .servers = request.servers, .sharding = request.sharding},
       {.exchange = Exchange::kServers, .servers = network.hosts(), .sharding = request.sharding, .colocated = true},
       {.exchange = Exchange::kByteps, .bucket_bytes = bucket, .servers = request.servers}});
  return plans;
}

}  // namespace

Result<std::vector<PredictedRow>> predicted_rows(const PredictRequest& request, const JobRunner& run) {
  const ScaledJob& job = request.job;
  std::vector<PredictedRow> rows;
  for (const int workers : job.workers) {
    const Network network = job.network(workers);
    for (const ExchangePlan& plan : plans_for(request, network)) {
      SYNCOPATE_ASSIGN_OR_RETURN(const prediction::StepPrediction step,
                                 predict_step(job.profile, job.step_seconds, network, plan));
      PredictedRow row{.workers = workers, .plan = plan, .step = step.step, .simulated = {}};
      const std::optional<RunRequest> alike =
          request.simulate ? run_like(job, workers, plan, *request.simulate) : std::nullopt;
      if (alike) {
        SYNCOPATE_ASSIGN_OR_RETURN(row.simulated, simulated_step(*alike, run));
      }
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace syncopate::experiments

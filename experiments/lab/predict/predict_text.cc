#include "experiments/lab/predict/predict_text.h"

#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;
using prediction::ExchangePlan;
using prediction::Network;

std::vector<ExchangePlan> plans_for(const PredictRequest& request, const Network& network) {
  const double bucket = request.bucket_bytes;
  return {{.exchange = Exchange::kRing, .bucket_bytes = bucket},
          {.exchange = Exchange::kTree, .bucket_bytes = bucket},
          {.exchange = Exchange::kHalvingDoubling, .bucket_bytes = bucket},
          {.exchange = Exchange::kServers, .servers = request.servers, .sharding = request.sharding},
          {.exchange = Exchange::kServers, .servers = network.hosts(), .sharding = request.sharding, .colocated = true},
          {.exchange = Exchange::kByteps, .bucket_bytes = bucket, .servers = request.servers}};
}

}  // namespace

Result<std::string> predict_text(const PredictRequest& request) {
  const ScaledJob& job = request.job;
  std::vector<std::vector<std::string>> rows = {{"exchange", "workers"}};
  const std::vector<std::string> columns = plan_columns(job);
  rows.front().insert(rows.front().end(), columns.begin(), columns.end());
  for (const int workers : job.workers) {
    const Network network = job.network(workers);
    for (const ExchangePlan& plan : plans_for(request, network)) {
      SYNCOPATE_ASSIGN_OR_RETURN(const prediction::StepPrediction step,
                                 predict_step(job.profile, job.step_seconds, network, plan));
      rows.push_back({plan_name(plan, network.hosts()), std::to_string(workers)});
      const std::vector<std::string> cells = plan_cells(job, workers, plan, step.step);
      rows.back().insert(rows.back().end(), cells.begin(), cells.end());
    }
  }
  return title_of(job) + "\n" + text_table(rows);
}

}  // namespace syncopate::experiments

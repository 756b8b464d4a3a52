#include "experiments/lab/predict/predict_text.h"

#include <fmt/format.h>

#include <optional>

#include "common/text/format.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/predict/simulated_step.h"
#include "experiments/lab/report/text_table.h"

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

// The simulated step in ms, and the form's step beside it, as "+3.1 %": longer than simulated.
Result<std::vector<std::string>> simulated_cells(const PredictRequest& request, int workers, const ExchangePlan& plan,
                                                 double predicted, const JobRunner& run) {
  const std::optional<RunRequest> alike = run_like(request.job, workers, plan, *request.simulate);
  if (!alike) return std::vector<std::string>{"-", "-"};
  SYNCOPATE_ASSIGN_OR_RETURN(const double simulated, simulated_step(*alike, run));
  return std::vector{format_ms(simulated * 1e3), fmt::format("{:+.1f} %", 100 * (predicted / simulated - 1))};
}

std::string about_simulation(simulation::NetworkModel network) {
  return fmt::format(
      "\nsimulated: ms of a step of this project's own strategies in virtual time, network {}; form: how much longer "
      "the closed form takes a step to be. -: one worker, more than {}, or nothing of ours is like it.\n",
      name_of(network), kMostWorkersBesideAPrediction);
}

}  // namespace

Result<std::string> predict_text(const PredictRequest& request, const JobRunner& run) {
  const ScaledJob& job = request.job;
  std::vector<std::vector<std::string>> rows = {{"exchange", "workers"}};
  const std::vector<std::string> columns = plan_columns(job);
  rows.front().insert(rows.front().end(), columns.begin(), columns.end());
  if (request.simulate) rows.front().insert(rows.front().end(), {"simulated", "form"});
  for (const int workers : job.workers) {
    const Network network = job.network(workers);
    for (const ExchangePlan& plan : plans_for(request, network)) {
      SYNCOPATE_ASSIGN_OR_RETURN(const prediction::StepPrediction step,
                                 predict_step(job.profile, job.step_seconds, network, plan));
      rows.push_back({plan_name(plan, network.hosts()), std::to_string(workers)});
      const std::vector<std::string> cells = plan_cells(job, workers, plan, step.step);
      rows.back().insert(rows.back().end(), cells.begin(), cells.end());
      if (!request.simulate) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const auto beside, simulated_cells(request, workers, plan, step.step, run));
      rows.back().insert(rows.back().end(), beside.begin(), beside.end());
    }
  }
  if (!request.simulate) {
    return title_of(job) + "\n" + text_table(rows) +
           "\n--simulate=frames puts a step of this project's own strategies beside each form; advise goes by these.\n";
  }
  return title_of(job, "Closed forms, and steps in virtual time beside them") + "\n" + text_table(rows) +
         about_simulation(*request.simulate);
}

}  // namespace syncopate::experiments

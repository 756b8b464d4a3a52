#include "experiments/lab/predict/fitted_ways.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "experiments/lab/predict/plan_name.h"

namespace syncopate::experiments {
namespace {

using prediction::ExchangePlan;
using prediction::MeasuredStep;
using prediction::ScalingFit;

// Runs of one way, but for their numbers of servers.
using Way = std::tuple<prediction::Exchange, bool, prediction::Sharding, double, bool>;

Way way_of(const ExchangePlan& plan) {
  return {plan.exchange, plan.colocated, plan.sharding, plan.bucket_bytes, plan.overlap};
}

ExchangePlan plan_at(const ScaledJob& job, const std::vector<MeasuredRun>& runs, int workers) {
  const auto found = std::ranges::find(runs, workers, &MeasuredRun::workers);
  if (found != runs.end() && workers > 1) return found->plan;
  const MeasuredRun& last = *std::ranges::max_element(runs, {}, &MeasuredRun::workers);
  ExchangePlan plan = last.plan;
  if (plan.colocated) {
    plan.servers = job.network(workers).hosts();
  } else if (std::ranges::any_of(runs, [&](const MeasuredRun& run) { return run.plan.servers != plan.servers; })) {
    plan.servers = std::max(1, static_cast<int>(std::lround(1.0 * workers * plan.servers / last.workers)));
  }
  return plan;
}

}  // namespace

Result<std::vector<FittedWay>> fitted_ways(const ScaledJob& job, const std::vector<MeasuredRun>& runs) {
  std::vector<MeasuredRun> alone;
  std::vector<std::pair<Way, std::vector<MeasuredRun>>> ways;
  for (const MeasuredRun& run : runs) {
    if (run.workers == 1) {
      alone.push_back(run);
      continue;
    }
    const Way way = way_of(run.plan);
    auto found = std::ranges::find(ways, way, &std::pair<Way, std::vector<MeasuredRun>>::first);
    if (found == ways.end()) found = ways.insert(ways.end(), {way, {}});
    found->second.push_back(run);
  }
  std::vector<FittedWay> all;
  for (const auto& [way, of_way] : ways) {
    std::set<int> sizes(job.workers.begin(), job.workers.end());
    std::vector<MeasuredStep> steps;
    std::vector<int> measured;
    std::vector<MeasuredRun> its = alone;
    its.insert(its.end(), of_way.begin(), of_way.end());
    std::ranges::sort(its, {}, &MeasuredRun::workers);
    for (const MeasuredRun& run : its) {
      sizes.insert(run.workers);
      measured.push_back(run.workers);
      const double seconds = static_cast<double>(run.workers) * job.batch_size / run.samples_per_second;
      steps.push_back({job.network(run.workers), plan_at(job, of_way, run.workers), seconds});
    }
    SYNCOPATE_ASSIGN_OR_RETURN(ScalingFit fit, ScalingFit::of(job.profile, job.step_seconds, steps));
    FittedWay fitted{
        .name = plan_name(plan_at(job, of_way, its.back().workers), job.network(its.back().workers).hosts()),
        .measured = std::move(measured),
        .fit = std::move(fit),
        .sizes = {}};
    for (const int workers : sizes) {
      FittedSize size{.workers = workers, .plan = plan_at(job, of_way, workers), .step = {}, .measured = {}};
      SYNCOPATE_ASSIGN_OR_RETURN(size.step, fitted.fit.step(job.network(workers), size.plan));
      const auto run = std::ranges::find(its, workers, &MeasuredRun::workers);
      if (run != its.end()) size.measured = run->samples_per_second;
      fitted.sizes.push_back(std::move(size));
    }
    all.push_back(std::move(fitted));
  }
  return all;
}

}  // namespace syncopate::experiments

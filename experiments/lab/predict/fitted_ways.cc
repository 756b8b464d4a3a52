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
using Way = std::tuple<prediction::Exchange, bool, int, bool, prediction::Sharding, double, bool>;

Way way_of(const ExchangePlan& plan) {
  return {plan.exchange, plan.colocated,    plan.spare_servers, plan.aggregated,
          plan.sharding, plan.bucket_bytes, plan.overlap};
}

const MeasuredRun* run_of(const std::vector<MeasuredRun>& runs, int workers) {
  const auto found = std::ranges::find(runs, workers, &MeasuredRun::workers);
  return found == runs.end() ? nullptr : &*found;
}

ExchangePlan plan_at(const ScaledJob& job, const std::vector<MeasuredRun>& runs, int workers) {
  if (const MeasuredRun* run = run_of(runs, workers)) return run->plan;
  const MeasuredRun& last = *std::ranges::max_element(runs, {}, &MeasuredRun::workers);
  ExchangePlan plan = last.plan;
  if (plan.colocated) {
    plan.servers = job.network(workers).hosts();
    plan.spare_servers = std::min(plan.spare_servers, plan.servers - 1);
  } else if (std::ranges::any_of(runs, [&](const MeasuredRun& run) { return run.plan.servers != plan.servers; })) {
    plan.servers = std::max(1, static_cast<int>(std::lround(1.0 * workers * plan.servers / last.workers)));
  }
  return plan;
}

}  // namespace

std::string FittedWay::name_of(const ScaledJob& job, const FittedSize& size) const {
  const bool is_alone = size.workers == 1 && size.plan.exchange != prediction::Exchange::kServers;
  return is_alone ? name : plan_name(size.plan, job.network(size.workers).hosts());
}

ScaledJob FittedWay::fitted_job(const ScaledJob& job) const {
  ScaledJob fitted = job;
  fitted.step_seconds = fit.value(prediction::Unknown::kAlone).median;
  return fitted;
}

Result<std::vector<FittedWay>> fitted_ways(const ScaledJob& job, const std::vector<MeasuredRun>& runs) {
  std::vector<MeasuredRun> alone;
  std::vector<std::pair<Way, std::vector<MeasuredRun>>> ways;
  for (const MeasuredRun& run : runs) {
    if (run.is_alone()) {
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
      if (measured.empty() || measured.back() != run.workers) measured.push_back(run.workers);
      const double seconds = static_cast<double>(run.workers) * job.batch_size / run.samples_per_second;
      // One that is alone exchanges nothing, whatever the way.
      const ExchangePlan plan = run.is_alone() ? ExchangePlan() : run.plan;
      steps.push_back({job.network(run.workers), plan, seconds});
    }
    SYNCOPATE_ASSIGN_OR_RETURN(ScalingFit fit, ScalingFit::of(job.profile, job.step_seconds, steps));
    FittedWay fitted{
        .name = plan_name(plan_at(job, of_way, its.back().workers), job.network(its.back().workers).hosts()),
        .measured = std::move(measured),
        .fit = std::move(fit),
        .sizes = {}};
    for (const int workers : sizes) {
      FittedSize size{.workers = workers, .plan = plan_at(job, of_way, workers), .step = {}, .measured = {}};
      const MeasuredRun* run = run_of(of_way, workers);
      if (run == nullptr) run = run_of(alone, workers);
      if (run != nullptr) size.measured = run->samples_per_second;
      if (run != nullptr && run->is_alone()) size.plan = ExchangePlan();
      SYNCOPATE_ASSIGN_OR_RETURN(size.step, fitted.fit.step(job.network(workers), size.plan));
      fitted.sizes.push_back(std::move(size));
    }
    all.push_back(std::move(fitted));
  }
  return all;
}

}  // namespace syncopate::experiments

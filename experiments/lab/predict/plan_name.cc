#include "experiments/lab/predict/plan_name.h"

#include "common/text/format.h"
#include "experiments/lab/predict/percent.h"

namespace syncopate::experiments {

namespace {

std::string servers_of(const prediction::ExchangePlan& plan, int hosts) {
  if (!plan.colocated) return fmt::format("servers: {}", plan.servers);
  if (plan.servers != hosts) return fmt::format("servers on workers' hosts: {}", plan.servers);
  const std::string more = plan.spare_servers > 0 ? fmt::format(" and {} besides", plan.spare_servers) : "";
  return "a server on each host" + more;
}

}  // namespace

std::string plan_name(const prediction::ExchangePlan& plan, int hosts) {
  using prediction::Exchange;
  const char* shards = plan.sharding == prediction::Sharding::kEven ? "even shards" : "whole variables";
  switch (plan.exchange) {
    case Exchange::kRing:
      return plan.stage > 0 ? fmt::format("sharded, stage {}", plan.stage) : "ring allreduce";
    case Exchange::kTree:
      return "tree allreduce";
    case Exchange::kHalvingDoubling:
      return "halving-doubling allreduce";
    case Exchange::kHierarchical:
      return "hierarchical allreduce";
    case Exchange::kServers:
      return fmt::format("{}, {}{}", servers_of(plan, hosts), shards,
                         plan.aggregated ? ", a host's gradients summed first" : "");
    case Exchange::kByteps:
      return fmt::format("BytePS's optimum, hosts more: {}", plan.servers);
  }
  return "";
}

std::string kind_name(const prediction::Way& way, int hosts) {
  if (way.family() == prediction::Family::kPipelines) {
    return fmt::format("pipeline of {} stages, {}", way.pipeline.stages, way.pipeline.schedule);
  }
  if (way.family() == prediction::Family::kParts) return fmt::format("layers in {} parts", way.parts);
  return (way.asynchronous ? "asynchronous: " : "") + plan_name(way.plan, hosts);
}

std::string way_name(const prediction::Way& way, const Addition& addition, int hosts) {
  std::string name = kind_name(way, hosts);
  const bool is_pipelined = way.family() == prediction::Family::kPipelines;
  if (is_pipelined) name += fmt::format(", {} microbatches", way.pipeline.microbatches);
  const bool exchanges = way.pipeline.stages * way.parts < hosts || hosts == 1;  // else nobody has the same weights
  if (way.family() != prediction::Family::kServers && exchanges) {
    if (addition.period == 1)
      name += way.plan.bucket_bytes > 0 ? fmt::format(", buckets of {:g} MB", way.plan.bucket_bytes / 1e6)
                                        : ", a tensor at a time";
  }
  return addition.name.empty() ? name : name + ", " + addition.name;
}

PlanFigures figures_of(const ScaledJob& job, int workers, const prediction::ExchangePlan& plan, double step) {
  const prediction::Network network = job.network(workers);
  PlanFigures figures{.hosts = network.hosts() + server_hosts(plan),
                      .step_seconds = step,
                      .samples_per_second = job.samples_per_second(workers, step),
                      .efficiency = job.step_seconds / step,
                      .cost_per_million_samples = {}};
  if (job.prices) {
    figures.cost_per_million_samples = cost_per_million_samples(*job.prices, network, plan, figures.samples_per_second);
  }
  return figures;
}

std::vector<std::string> plan_columns(const ScaledJob& job) {
  std::vector<std::string> columns = {"hosts", "ms/step", "samples/s", "efficiency"};
  if (job.prices) columns.emplace_back("cost/million");
  return columns;
}

std::vector<std::string> plan_cells(const ScaledJob& job, int workers, const prediction::ExchangePlan& plan,
                                    double step) {
  const PlanFigures figures = figures_of(job, workers, plan, step);
  std::vector<std::string> cells = {std::to_string(figures.hosts), format_ms(step * 1e3),
                                    format_count(figures.samples_per_second), percent(figures.efficiency)};
  if (job.prices) cells.push_back(cost_text(job, workers, plan, step));
  return cells;
}

std::string cost_text(const ScaledJob& job, int workers, const prediction::ExchangePlan& plan, double step) {
  const double cost = *figures_of(job, workers, plan, step).cost_per_million_samples;
  if (cost < 0.1) return fmt::format("{:.3g}", cost);
  return cost < 100 ? fmt::format("{:.2f}", cost) : format_count(cost);
}

}  // namespace syncopate::experiments

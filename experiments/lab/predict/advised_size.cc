#include "experiments/lab/predict/advised_size.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/divided_ways.h"

namespace syncopate::experiments {

Result<std::vector<AdvisedSize>> advised_sizes(const AdviseRequest& request, const JobRunner& run) {
  const prediction::AdvisedJob advised = request.advised_job();
  std::vector<AdvisedSize> sizes;
  for (const int workers : request.job.workers) {
    const DividedWays pipelines = divided_ways(request, workers);
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::SearchResult found,
                               search(advised, request.job.network(workers), request.space(workers), pipelines.ways));
    AdvisedSize size{.workers = workers};
    if (workers > 1) {
      SYNCOPATE_ASSIGN_OR_RETURN(size.simulated, simulate_ways(request, workers, found, run));
      size.simulated.refused.insert(size.simulated.refused.end(), pipelines.refused.begin(), pipelines.refused.end());
      size.lead = lead_in(workers, size.simulated);
    }
    size.sentences = advice(request, workers, found, size.simulated);
    sizes.push_back(std::move(size));
  }
  return sizes;
}

std::vector<std::size_t> best_of_each_kind(const std::vector<SimulatedWay>& ways) {
  constexpr std::size_t kMostRowsOfAdvice = 16;
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto is_like = [&](std::size_t other) {
      return ways[other].way.is_of_kind(ways[i].way) && ways[other].addition.name == ways[i].addition.name;
    };
    if (best.size() < kMostRowsOfAdvice && std::ranges::none_of(best, is_like)) best.push_back(i);
  }
  return best;
}

std::optional<double> servers_over_allreduce(const AdvisedSize& size) {
  const SimulatedWay* const allreduce = size.simulated.synchronous(prediction::Family::kAllreduce);
  const SimulatedWay* const servers = size.simulated.synchronous(prediction::Family::kServers);
  if (allreduce == nullptr || servers == nullptr) return std::nullopt;
  return allreduce->score / servers->score;
}

std::vector<Crossover> crossovers_of(const std::vector<AdvisedSize>& sizes) {
  std::vector<RatioAtValue> ratios;
  for (const AdvisedSize& size : sizes) {
    if (const auto ratio = servers_over_allreduce(size)) ratios.push_back({double(size.workers), *ratio});
  }
  std::ranges::sort(ratios, {}, &RatioAtValue::value);
  std::vector<Crossover> crossovers;
  std::optional<std::size_t> last;  // where one of them was ahead
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const bool servers_lead = ratios[i].ratio > 1 + kLeastLead;
    if (!servers_lead && ratios[i].ratio >= 1 / (1 + kLeastLead)) continue;
    if (last && (ratios[*last].ratio > 1) != servers_lead) {
      crossovers.push_back({.option = "workers",
                            .others = {},
                            .below = servers_lead ? "allreduce" : "servers",
                            .above = servers_lead ? "servers" : "allreduce",
                            .at = crossing(std::span(ratios).subspan(*last, i - *last + 1)),
                            .between = {ratios[*last].value, ratios[i].value}});
    }
    last = i;
  }
  return crossovers;
}

std::string place_of(const Crossover& one) {
  return one.at < 100 ? fmt::format("{:.2g}", one.at) : fmt::format("{:.0f}", one.at);
}

}  // namespace syncopate::experiments

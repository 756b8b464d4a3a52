#include "experiments/lab/predict/advise_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/predict/simulated_search.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostRowsOfAdvice = 12;

// The first of each kind, in their order.
std::vector<const SimulatedWay*> best_of_each_kind(const std::vector<SimulatedWay>& ways) {
  std::vector<const SimulatedWay*> best;
  for (const SimulatedWay& one : ways) {
    const auto is_like = [&](const SimulatedWay* other) {
      return other->way.is_of_kind(one.way) && other->addition.name == one.addition.name;
    };
    if (best.size() < kMostRowsOfAdvice && std::ranges::none_of(best, is_like)) best.push_back(&one);
  }
  return best;
}

std::string table_of(const ScaledJob& job, int workers, const std::vector<const SimulatedWay*>& ways) {
  std::vector<std::vector<std::string>> rows = {{"the best of each kind, simulated"}};
  const std::vector<std::string> columns = plan_columns(job);
  rows.front().insert(rows.front().end(), columns.begin(), columns.end());
  rows.front().emplace_back("staleness");
  for (const SimulatedWay* one : ways) {
    rows.push_back(
        {fmt::format("{}. {}", rows.size(), way_name(one->way, one->addition, job.network(workers).hosts()))});
    const std::vector<std::string> cells = plan_cells(job, workers, one->way.plan, one->step);
    rows.back().insert(rows.back().end(), cells.begin(), cells.end());
    rows.back().push_back(one->way.asynchronous ? fmt::format("{:.1f}", one->staleness) : "-");
  }
  return text_table(rows);
}

std::string commands_of(const std::vector<const SimulatedWay*>& ways) {
  std::string text = "The rows as commands:\n";
  for (std::size_t i = 0; i < ways.size(); ++i) text += fmt::format("  {}. {}\n", i + 1, command_of(ways[i]->words));
  return text;
}

}  // namespace

Result<std::string> advise_text(const AdviseRequest& request, const JobRunner& run) {
  const ScaledJob& job = request.job;
  const prediction::AdvisedJob advised = request.advised_job();
  std::vector<std::string> leads;
  std::string text = title_of(job, "Simulated");
  for (const int workers : job.workers) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::SearchResult found,
                               search(advised, job.network(workers), request.space(workers)));
    SimulatedSearch simulated;
    if (workers > 1) {
      SYNCOPATE_ASSIGN_OR_RETURN(simulated, simulate_ways(request, workers, found, run));
      leads.push_back(lead_in(workers, simulated));
    }
    const std::vector<const SimulatedWay*> best = best_of_each_kind(simulated.ways);
    text += fmt::format("\n{} worker{}\n", workers, workers == 1 ? "" : "s");
    if (!best.empty()) text += table_of(job, workers, best);
    for (const std::string& sentence : advice(request, workers, found, simulated)) {
      text += fmt::format("- {}\n", sentence);
    }
    if (!best.empty()) text += commands_of(best);
  }
  if (leads.size() > 1) {
    text += fmt::format("\nWhich mode is ahead, its best synchronous way against the other's, by workers: {}.\n",
                        fmt::join(leads, "; "));
  }
  return text + "\n" + how_sure(job);
}

}  // namespace syncopate::experiments

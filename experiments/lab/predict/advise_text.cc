#include "experiments/lab/predict/advise_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text/format.h"
#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

std::string commands_of(const std::vector<SimulatedWay>& ways, const std::vector<std::size_t>& best) {
  std::string text = "The rows as commands:\n";
  for (std::size_t i = 0; i < best.size(); ++i) {
    text += fmt::format("  {}. {}\n", i + 1, command_of(ways[best[i]].words));
  }
  return text;
}

}  // namespace

std::vector<std::vector<std::string>> advise_rows(const AdviseRequest& request, const AdvisedSize& size) {
  const ScaledJob& job = request.job;
  std::vector<std::vector<std::string>> rows = {{"the best of each kind, simulated"}};
  const std::vector<std::string> columns = plan_columns(job);
  rows.front().insert(rows.front().end(), columns.begin(), columns.end());
  rows.front().emplace_back("memory");
  rows.front().emplace_back("staleness");
  for (const std::size_t place : best_of_each_kind(size.simulated.ways)) {
    const SimulatedWay& one = size.simulated.ways[place];
    rows.push_back(
        {fmt::format("{}. {}", rows.size(), way_name(one.way, one.addition, job.network(size.workers).hosts()))});
    const std::vector<std::string> cells = plan_cells(job, size.workers, one.way.plan, one.step);
    rows.back().insert(rows.back().end(), cells.begin(), cells.end());
    rows.back().push_back(format_bytes(one.host_bytes));
    rows.back().push_back(one.way.asynchronous ? fmt::format("{:.1f}", one.staleness) : "-");
  }
  return rows;
}

std::string modes_ahead(const std::vector<AdvisedSize>& sizes) {
  std::vector<std::string> leads;
  for (const AdvisedSize& size : sizes) {
    if (!size.lead.empty()) leads.push_back(size.lead);
  }
  if (leads.size() < 2) return "";
  std::string text = fmt::format("Which mode is ahead, its best synchronous way against the others', by workers: {}.",
                                 fmt::join(leads, "; "));
  for (const Crossover& one : crossovers_of(sizes)) {
    text += fmt::format(" Between {:g} and {:g} workers, at about {}, {} overtake{} {}.", one.between.low,
                        one.between.high, place_of(one), one.above, one.above == "servers" ? "" : "s", one.below);
  }
  return text;
}

std::string advise_text(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes) {
  std::string text = title_of(request.job, "Simulated");
  for (const AdvisedSize& size : sizes) {
    const std::vector<std::size_t> best = best_of_each_kind(size.simulated.ways);
    text += fmt::format("\n{} worker{}\n", size.workers, size.workers == 1 ? "" : "s");
    if (!best.empty()) text += text_table(advise_rows(request, size));
    for (const std::string& sentence : size.sentences) text += fmt::format("- {}\n", sentence);
    if (!best.empty()) text += commands_of(size.simulated.ways, best);
  }
  if (const std::string modes = modes_ahead(sizes); !modes.empty()) text += "\n" + modes + "\n";
  return text + fmt::format("\n{}\n", fmt::join(how_sure(request.job), "\n"));
}

}  // namespace syncopate::experiments

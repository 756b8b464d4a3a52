#include "experiments/lab/predict/advice_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/advice_charts.h"
#include "experiments/lab/predict/advise_text.h"
#include "experiments/lab/predict/prediction_record.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

// As `compare --modes` takes it.
std::string mode_of(const prediction::Way& way) {
  if (way.family() == prediction::Family::kServers) return way.asynchronous ? "ps:async" : "ps:sync";
  if (way.family() == prediction::Family::kPipelines) return fmt::format("allreduce:pipeline:{}", way.pipeline.stages);
  if (way.family() == prediction::Family::kParts) return fmt::format("allreduce:tensor:{}", way.parts);
  return way.plan.stage > 0 ? fmt::format("sharded:{}", way.plan.stage) : "allreduce";
}

FlatRow row_of(const AdviseRequest& request, const AdvisedSize& size, std::size_t place, bool is_best) {
  const SimulatedWay& one = size.simulated.ways[place];
  FlatRow row = {{"workers", size.workers},
                 {"place", place + 1},
                 {"way", way_name(one.way, one.addition, request.job.network(size.workers).hosts())},
                 {"best_of_its_kind", is_best},
                 {"mode", mode_of(one.way)},
                 {"synchronous", one.is_synchronous()}};
  add_figures(figures_of(request.job, size.workers, one.way.plan, one.step), row);
  row["memory_bytes"] = one.host_bytes;
  row["staleness"] = nullptr;
  if (one.way.asynchronous) row["staleness"] = one.staleness;
  row["command"] = command_of(one.words);
  return row;
}

std::vector<FlatRow> rows_of(const AdviseRequest& request, const AdvisedSize& size) {
  const std::vector<std::size_t> best = best_of_each_kind(size.simulated.ways);
  std::vector<FlatRow> rows;
  for (std::size_t i = 0; i < size.simulated.ways.size(); ++i) {
    rows.push_back(row_of(request, size, i, std::ranges::find(best, i) != best.end()));
  }
  return rows;
}

std::string size_html(const AdviseRequest& request, const AdvisedSize& size) {
  std::string html = fmt::format("<h2>{} worker{}</h2>\n", size.workers, size.workers == 1 ? "" : "s");
  const std::vector<std::size_t> best = best_of_each_kind(size.simulated.ways);
  if (!best.empty()) html += html_table(advise_rows(request, size), fmt::format("{} workers", size.workers));
  html += html_list(size.sentences);
  std::string commands;
  for (const std::size_t place : best) {
    std::vector<std::string> words = size.simulated.ways[place].words;
    words.insert(words.begin(), "./run_experiment");
    commands += fmt::format("<p>{}</p>\n", html_command(words));
  }
  return commands.empty() ? html : html + html_folded("The rows as commands", commands);
}

}  // namespace

std::vector<FlatRow> advice_rows(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes) {
  std::vector<FlatRow> all;
  for (const AdvisedSize& size : sizes) {
    const std::vector<FlatRow> rows = rows_of(request, size);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::string advice_json(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes,
                        const std::string& command) {
  nlohmann::ordered_json json = {{"command", command},
                                 {"job", job_json(request.job)},
                                 {"goal", request.goal == prediction::Goal::kCheapest ? "cheapest" : "fastest"},
                                 {"sizes", nlohmann::ordered_json::array()},
                                 {"crossovers", nlohmann::ordered_json::array()},
                                 {"how_sure", fmt::format("{}", fmt::join(how_sure(request.job), " "))}};
  for (const AdvisedSize& size : sizes) {
    json["sizes"].push_back({{"workers", size.workers},
                             {"ways", rows_of(request, size)},
                             {"sentences", size.sentences},
                             {"lead", size.lead}});
  }
  for (const Crossover& one : crossovers_of(sizes)) {
    json["crossovers"].push_back({{"option", one.option},
                                  {"faster_below", one.below},
                                  {"faster_above", one.above},
                                  {"at", one.at},
                                  {"between", {one.between.low, one.between.high}}});
  }
  return json.dump(1) + "\n";
}

std::string advice_html(const AdviseRequest& request, const std::vector<AdvisedSize>& sizes,
                        const std::string& command) {
  std::string body = opening_html(title_of(request.job, "Simulated"), command);
  if (const std::string modes = modes_ahead(sizes); !modes.empty())
    body += fmt::format("<p>{}</p>\n", html_text(modes));
  body += html_charts(advice_charts(request, sizes));
  for (const AdvisedSize& size : sizes) body += size_html(request, size);
  for (const std::string& paragraph : how_sure(request.job)) body += fmt::format("<p>{}</p>\n", html_text(paragraph));
  return html_page(fmt::format("Advice for {}", request.job.profile.model), body);
}

}  // namespace syncopate::experiments

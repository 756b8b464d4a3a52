#include "experiments/lab/predict/reproduction_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/predict/percent.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

using prediction::CellUse;
using prediction::ReproducedCell;
using prediction::Reproduction;

std::string list_of(const char* title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return fmt::format("{}: nothing.\n", title);
  std::string text = fmt::format("{}:\n", title);
  for (const std::string& sentence : sentences) text += fmt::format("  {}\n", sentence);
  return text;
}

std::int64_t predicted_cells(const Reproduction& table) {
  return std::ranges::count(table.cells, CellUse::kPredicted, &ReproducedCell::use);
}

std::string bar_of(const Reproduction& table) {
  return fmt::format("{} / {}", percent(table.median_bar), percent(table.worst_bar));
}

}  // namespace

const char* name_of(CellUse use) {
  switch (use) {
    case CellUse::kPredicted:
      return "predicted";
    case CellUse::kCalibrated:
      return "calibrated";
    case CellUse::kLeftOut:
      return "left out";
  }
  return "";
}

std::vector<std::vector<std::string>> reproduction_rows(const Reproduction& table) {
  const bool has_intervals = std::ranges::any_of(table.cells, &ReproducedCell::has_interval);
  std::vector<std::vector<std::string>> rows = {
      {"setup", "workers", table.reference + ", " + table.unit, "closed form", "error", "cell"}};
  if (has_intervals) rows.front().insert(rows.front().begin() + 4, "9 of 10");
  for (const ReproducedCell& cell : table.cells) {
    rows.push_back({cell.setup, std::to_string(cell.workers), fmt::format("{:.5g}", cell.measured),
                    fmt::format("{:.5g}", cell.predicted),
                    cell.use == CellUse::kCalibrated ? "" : fmt::format("{:+.1f} %", cell.error() * 100),
                    name_of(cell.use)});
    if (has_intervals) {
      rows.back().insert(rows.back().begin() + 4, fmt::format("{:.4g} to {:.4g}", cell.low, cell.high));
    }
  }
  return rows;
}

std::string reproduction_errors(const Reproduction& table) {
  const std::string inside =
      table.judged_by_intervals() == 0
          ? ""
          : fmt::format("; {} of {} lie inside their intervals, and {:.0f} % must", table.inside_intervals(),
                        table.judged_by_intervals(), 100 * table.inside_bar);
  return fmt::format("{} predicted cells: median error {}, worst {}{}; the bar is {}, which it {}.",
                     predicted_cells(table), percent(table.median_error()), percent(table.worst_error()), inside,
                     bar_of(table), table.holds() ? "holds" : "misses");
}

std::vector<std::vector<std::string>> summary_rows(const std::vector<Reproduction>& tables) {
  std::vector<std::vector<std::string>> rows = {{"table", "predicted cells", "median", "worst", "bar", ""}};
  for (const Reproduction& table : tables) {
    rows.push_back({table.name, std::to_string(predicted_cells(table)), percent(table.median_error()),
                    percent(table.worst_error()), bar_of(table), table.holds() ? "holds" : "misses"});
  }
  return rows;
}

std::string reproduction_text(const Reproduction& table) {
  return fmt::format("{}: {}.\nSource: {}.\nClosed form, nothing is simulated: {}.\n", table.name, table.what,
                     table.source, table.model) +
         list_of("Calibrated", table.calibrated) + list_of("Left out", table.left_out) + "\n" +
         text_table(reproduction_rows(table)) + "\n" + reproduction_errors(table) + "\n";
}

}  // namespace syncopate::experiments

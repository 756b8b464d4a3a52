#include "experiments/lab/report/step_parts_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/text/format.h"

namespace syncopate::experiments {
namespace {

constexpr double kColumnPart = 0.01;           // of a step, that a part must take in some row to have a column
constexpr std::size_t kRowsWithSentences = 3;  // in a longer table two rows have some

std::string part_ms(double ms) { return std::abs(ms) < 0.0005 ? "0" : fmt::format("{:.3g}", ms); }

// The names of parts that have a column, in their order.
std::vector<std::string> columns_of(const std::vector<const ComparedRow*>& rows) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows.front()->step->parts.size(); ++i) {
    const bool counts = std::ranges::any_of(rows, [&](const ComparedRow* row) {
      return std::abs(row->step->parts[i].second) >= kColumnPart * row->step->measured_ms;
    });
    if (counts) names.push_back(rows.front()->step->parts[i].first);
  }
  return names;
}

std::vector<std::string> cells_of(const ComparedRow& row, const std::vector<std::string>& columns, bool has_forms) {
  const StepParts& step = *row.step;
  std::vector<std::string> cells{row.label, part_ms(step.ideal_ms)};
  double rest = step.measured_ms - step.ideal_ms;
  for (const auto& [name, ms] : step.parts) {
    if (std::ranges::find(columns, name) == columns.end()) continue;
    cells.push_back(part_ms(ms));
    rest -= ms;
  }
  cells.push_back(part_ms(rest));
  cells.push_back(part_ms(step.measured_ms));
  cells.push_back(fmt::format("{:.0f} %", 100 * step.ideal_ms / step.measured_ms));
  if (!has_forms) return cells;
  cells.push_back(step.predicted ? format_count(*step.predicted) : "-");
  cells.push_back(step.predicted ? fmt::format("{:.0f} %", 100 * step.samples_per_second / *step.predicted) : "-");
  return cells;
}

}  // namespace

std::optional<ComparisonTable> step_parts_table(const ComparisonReport& report) {
  std::vector<const ComparedRow*> rows;
  for (const ComparedRow& row : report.rows) {
    if (row.step) rows.push_back(&row);
  }
  if (rows.empty()) return std::nullopt;
  const bool has_forms =
      std::ranges::any_of(rows, [](const ComparedRow* row) { return row->step->predicted.has_value(); });
  const std::vector<std::string> columns = columns_of(rows);
  ComparisonTable table{.title = "Where a step's time went: ms of a mean step, in the round of median throughput"};
  std::vector<std::string> head{"mode", "ideal"};
  head.insert(head.end(), columns.begin(), columns.end());
  head.insert(head.end(), {"rest", "measured", "of ideal"});
  if (has_forms) {
    table.title +=
        "; closed form: samples/s by the formulas of the exchange, or of a pipeline's schedule, for this computing and "
        "link";
    head.insert(head.end(), {"closed form", "measured of it"});
  }
  table.rows.push_back(std::move(head));
  for (const ComparedRow* row : rows) table.rows.push_back(cells_of(*row, columns, has_forms));
  const auto rate = [](const ComparedRow* row) { return row->step->samples_per_second; };
  const auto part_of_ideal = [](const ComparedRow* row) { return row->step->ideal_ms / row->step->measured_ms; };
  std::vector<const ComparedRow*> said = rows;
  if (rows.size() > kRowsWithSentences) {
    said = {std::ranges::max(rows, {}, rate)};
    const ComparedRow* const loses_most = std::ranges::min(rows, {}, part_of_ideal);
    if (loses_most != said.front()) said.push_back(loses_most);
  }
  for (const ComparedRow* row : said) table.sentences.push_back(fmt::format("{}: {}", row->label, row->step->why));
  return table;
}

}  // namespace syncopate::experiments

#include "experiments/lab/report/varied_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

std::optional<double> value_in(const ComparedRow& row, const std::string& option) {
  const auto found = std::ranges::find(row.values, option, &std::pair<std::string, std::string>::first);
  if (found == row.values.end()) return std::nullopt;
  const std::optional<double> value = parse_number<double>(found->second);
  return value && *value > 0 ? value : std::nullopt;
}

std::string others_of(const ComparedRow& row, const std::string& option) {
  std::string text;
  for (const auto& [name, value] : row.values) {
    if (name != option) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

}  // namespace

std::vector<RowsOverOption> rows_over(const ComparisonReport& report, const std::string& option) {
  std::vector<RowsOverOption> all;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const ComparedRow& row = report.rows[i];
    const std::optional<double> value = value_in(row, option);
    if (!value) continue;
    const std::string others = others_of(row, option);
    auto same = std::ranges::find_if(
        all, [&](const RowsOverOption& rows) { return rows.mode == row.mode && rows.others == others; });
    if (same == all.end()) same = all.insert(same, {.mode = row.mode, .others = others, .row_of = {}});
    same->row_of.emplace(*value, i);
  }
  return all;
}

std::string name_of(const RowsOverOption& rows) {
  return rows.others.empty() ? rows.mode : fmt::format("{} {}", rows.mode, rows.others);
}

}  // namespace syncopate::experiments

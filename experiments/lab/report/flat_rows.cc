#include "experiments/lab/report/flat_rows.h"

#include "experiments/lab/report/csv_text.h"

namespace syncopate::experiments {

std::string rows_csv(const std::vector<FlatRow>& rows) {
  std::string csv;
  const auto add_line = [&](const FlatRow& row, const auto& cell) {
    for (auto field = row.begin(); field != row.end(); ++field) {
      if (field != row.begin()) csv += ',';
      csv += cell(field);
    }
    csv += '\n';
  };
  if (!rows.empty()) add_line(rows.front(), [](const auto& field) { return field.key(); });
  for (const FlatRow& row : rows) {
    add_line(row, [](const auto& field) -> std::string {
      if (field->is_null()) return "";
      return field->is_string() ? csv_text(field->template get<std::string>()) : field->dump();
    });
  }
  return csv;
}

}  // namespace syncopate::experiments

#include "prediction/published_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "common/text/number.h"
#include "prediction/embedded_texts.h"

namespace syncopate::prediction {
namespace {

// Returns the values of a line; none if a quote stays open.
std::optional<std::vector<std::string>> values_of(std::string_view line) {
  std::vector<std::string> values(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool doubled = quoted && line.substr(i, 2) == "\"\"";
    if (doubled) {
      values.back() += '"';
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      values.emplace_back();
    } else {
      values.back() += line[i];
    }
  }
  if (quoted) return std::nullopt;
  return values;
}

}  // namespace

const std::string& PublishedRow::text(const std::string& column) const { return cells_.at(column); }

double PublishedRow::number(const std::string& column) const {
  const std::optional<double> value = parse_number<double>(text(column));
  assert(value.has_value());
  return value.value_or(0);
}

std::string PublishedRow::noted(const std::string& name) const {
  const std::string& note = text("note");
  const std::size_t begin = note.find(name + "=");
  if (begin == std::string::npos) return "";
  const std::size_t value = begin + name.size() + 1;
  return note.substr(value, note.find(';', value) - value);
}

Result<std::vector<PublishedRow>> read_table(std::string_view text) {
  std::vector<std::string> columns;
  std::vector<PublishedRow> rows;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::optional<std::vector<std::string>> values = values_of(line);
    if (!values) return Status::invalid_argument(fmt::format("line {}: a quote is not closed", number));
    if (number == 1) {
      columns = *values;
      continue;
    }
    if (values->size() != columns.size()) {
      return Status::invalid_argument(
          fmt::format("line {}: has {} values, not {} as the first", number, values->size(), columns.size()));
    }
    std::map<std::string, std::string> cells;
    for (std::size_t i = 0; i < columns.size(); ++i) cells[columns[i]] = (*values)[i];
    rows.emplace_back(std::move(cells));
  }
  return rows;
}

std::vector<PublishedRow> published_table(std::string_view name) {
  const auto found = published_texts().find(name);
  assert(found != published_texts().end());
  Result<std::vector<PublishedRow>> rows = read_table(found->second);
  assert(rows.ok());
  return std::move(*rows);
}

}  // namespace syncopate::prediction

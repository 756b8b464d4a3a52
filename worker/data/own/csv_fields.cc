#include "worker/data/own/csv_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "worker/data/text_lines.h"

namespace syncopate::worker {
namespace {

std::string_view trimmed(std::string_view text, char separator) {
  const auto is_blank = [&](char c) { return (c == ' ' || c == '\t') && c != separator; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Takes a field in quotes off the front of `rest`. Returns whether it ends.
bool take_quoted(std::string_view& rest, std::string& field) {
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] != '"') {
      field += rest[i];
    } else if (i + 1 < rest.size() && rest[i + 1] == '"') {
      field += rest[i++];
    } else {
      rest.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string split_csv(std::string_view line, char separator, std::vector<std::string>& fields) {
  fields.clear();
  for (std::string_view rest = line;;) {
    std::string field;
    const std::string_view ahead = trimmed(rest, separator);
    std::size_t end = 0;
    if (ahead.starts_with('"')) {
      rest = rest.substr(static_cast<std::size_t>(ahead.data() - rest.data()));
      if (!take_quoted(rest, field))
        return fmt::format("column {}: quotes that do not end on the line", fields.size() + 1);
      end = rest.find(separator);
      if (const std::string_view behind = trimmed(rest.substr(0, end), separator); !behind.empty()) {
        return fmt::format("column {}: '{}' behind the quotes that end it", fields.size() + 1, behind.substr(0, 80));
      }
    } else {
      end = rest.find(separator);
      field = trimmed(rest.substr(0, end), separator);
    }
    fields.push_back(std::move(field));
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
}

std::optional<double> number_of_field(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  const std::optional<double> number = parse_number<double>(field);
  if (!number || !std::isfinite(static_cast<float>(*number))) return std::nullopt;
  return number;
}

bool means_missing(std::string_view field) {
  constexpr std::array<std::string_view, 15> kMarks{"",     "na",  "n/a",     "#n/a", "<na>", "nan", "-nan", "null",
                                                    "none", "nil", "missing", "?",    "-",    "--",  "."};
  std::string lower(field);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kMarks, lower) != kMarks.end();
}

}  // namespace syncopate::worker

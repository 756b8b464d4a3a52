// CsvLine: the fields of one line of a table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::worker {

// The mark that some programs begin a text with, which says that it is UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

// Cuts a line into fields, as RFC 4180 has it: a field may stand in double quotes, which then may hold the separator,
// and a double quote as two; quoted fields end on their line. Blanks around a field are left out. Returns what is
// wrong; empty: nothing.
std::string split_csv(std::string_view line, char separator, std::vector<std::string>& fields);

// Returns a number as tables have it: also with a plus, and never "nan" or one that a float cannot hold.
std::optional<double> number_of_field(std::string_view field);
// Whether a field is what programs write where a value is missing: "NA", "nan", "null", "?" and their like.
bool means_missing(std::string_view field);

}  // namespace syncopate::worker

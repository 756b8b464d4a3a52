#include "worker/data/own/csv_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/text/printable_text.h"
#include "worker/data/file_bytes.h"
#include "worker/data/own/csv_fields.h"
#include "worker/data/text_lines.h"

namespace syncopate::worker {
namespace {

std::string shown_field(std::string_view field) { return printable(field, kLongestShown); }

bool is_whole_text(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  return parse_number<std::int64_t>(field).has_value();
}

struct TableHeader {
  std::vector<std::string> names;
  char separator = ',';
  std::size_t target = 0;        // the index of the column
  std::vector<bool> is_feature;  // by column
  std::string note;              // what a person must know of how it was read; empty: nothing
};

std::vector<std::string> names_between_commas(const std::string& text) {
  std::vector<std::string> names;
  if (!text.empty()) (void)split_csv(text, ',', names);
  return names;
}

Result<std::size_t> column_of(const TableHeader& header, const std::string& name, const char* option,
                              const std::string& path) {
  const auto found = std::ranges::find(header.names, name);
  if (found != header.names.end()) return static_cast<std::size_t>(found - header.names.begin());
  return Status::invalid_argument(fmt::format("--{}={}: {} has no such column; it has {}", option, name, path,
                                              printable(fmt::format("{}", fmt::join(header.names, ", ")), 400)));
}

// A first line of numbers beside the target's text is a sample, of a table without names, unless the numbers are whole,
// as names of columns may be.
Status check_names(const std::string& path, TableHeader& header) {
  std::vector<std::string> numbers;
  bool are_whole = true;
  for (std::size_t column = 0; column < header.names.size(); ++column) {
    if (!header.is_feature[column] || !number_of_field(header.names[column])) continue;
    numbers.push_back(header.names[column]);
    are_whole = are_whole && is_whole_text(header.names[column]);
  }
  if (numbers.empty()) return {};
  const std::string shown = printable(fmt::format("{}", fmt::join(numbers, ", ")), kLongestShown);
  if (!are_whole && std::ssize(numbers) == std::ranges::count(header.is_feature, true)) {
    return wrong_line(path, 1, fmt::format("numbers ({}), expected the names of the columns", shown));
  }
  header.note = fmt::format("{}: line 1: taken for the names of the columns, though {} of {} are numbers ({})", path,
                            numbers.size(), header.names.size(), shown);
  return {};
}

Result<TableHeader> header_of(std::string_view line, const OwnOptions& options, const std::string& path) {
  TableHeader header;
  constexpr std::string_view kSeparators = ",;\t";
  if (const std::size_t at = line.find_first_of(kSeparators); at != std::string_view::npos) header.separator = line[at];
  if (const std::string wrong = split_csv(line, header.separator, header.names); !wrong.empty()) {
    return wrong_line(path, 1, wrong);
  }
  if (header.names.size() < 2) {
    return wrong_line(path, 1,
                      fmt::format("one column, '{}'; expected two or more between commas, semicolons or tabs",
                                  shown_field(header.names.front())));
  }
  const auto is_number = [](const std::string& name) { return number_of_field(name).has_value(); };
  if (std::ranges::all_of(header.names, is_number)) {
    return wrong_line(path, 1, "numbers alone, expected the names of the columns");
  }
  std::set<std::string> seen;
  for (const std::string& name : header.names) {
    if (!name.empty() && !seen.insert(name).second) {
      return wrong_line(path, 1, fmt::format("the column '{}' is there twice", shown_field(name)));
    }
  }
  header.target = header.names.size() - 1;
  if (!options.target.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(header.target, column_of(header, options.target, "target", path));
  }
  header.is_feature.assign(header.names.size(), true);
  header.is_feature[header.target] = false;
  for (const std::string& name : names_between_commas(options.ignore)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::size_t column, column_of(header, name, "ignore", path));
    if (column == header.target) {
      return Status::invalid_argument(fmt::format("--ignore={}: is the column that is to be predicted", name));
    }
    header.is_feature[column] = false;
  }
  if (std::ranges::count(header.is_feature, true) == 0) {
    return Status::invalid_argument(fmt::format("--ignore={}: leaves no column to learn from", options.ignore));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_names(path, header));
  return header;
}

// Takes what the lines of a table say, one after the other.
class TableLines {
 public:
  TableLines(const TableHeader& header, const std::string& path) : header_(header), path_(path) {
    target_.name = header.names[header.target];
    target_.path = path;
    target_.whole = true;
    target_.lines_above = 1;
    target_.is_table = true;
  }

  Status take(const std::vector<std::string>& fields, std::int64_t line) {
    for (std::size_t column = 0; column < fields.size(); ++column) {
      const std::string& field = fields[column];
      if (field.empty() && (header_.is_feature[column] || column == header_.target)) {
        return wrong(line, column, "is empty, expected a value in each line");
      }
      if (column == header_.target) {
        take_target(field);
      } else if (header_.is_feature[column]) {
        const std::optional<double> number = number_of_field(field);
        if (!number) {
          return wrong(
              line, column,
              fmt::format("is '{}', expected a finite number; --ignore leaves a column out", shown_field(field)));
        }
        values_.push_back(*number);
      }
    }
    return {};
  }

  Result<OwnFiles> finish() {
    if (target_.texts.empty()) return Status::data_loss("holds no samples, expected at least 1").in(path_);
    if (target_.numbers.size() == target_.texts.size()) {
      target_.texts.clear();
    } else {
      target_.numbers.clear();
      target_.whole = false;
    }
    std::vector<std::string> names;
    for (std::size_t column = 0; column < header_.names.size(); ++column) {
      if (header_.is_feature[column]) names.push_back(header_.names[column]);
    }
    const ImageShape shape{1, 1, static_cast<int>(names.size())};
    return OwnFiles{.samples = {.path = path_,
                                .values = NumberArray::of(std::move(values_), shape),
                                .target = std::move(target_),
                                .names = std::move(names)},
                    .test = {},
                    .notes = header_.note.empty() ? std::vector<std::string>() : std::vector{header_.note}};
  }

 private:
  Status wrong(std::int64_t line, std::size_t column, const std::string& what) const {
    return wrong_line(path_, line, fmt::format("column '{}' {}", shown_field(header_.names[column]), what));
  }

  // The texts are dropped in the end if all are numbers.
  void take_target(const std::string& field) {
    if (target_.numbers.size() == target_.texts.size()) {
      if (const std::optional<double> number = number_of_field(field)) target_.numbers.push_back(*number);
      target_.whole = target_.whole && is_whole_text(field);
    }
    target_.texts.push_back(field);
  }

  const TableHeader& header_;
  const std::string& path_;
  std::vector<double> values_;
  TargetColumn target_;
};

}  // namespace

Result<OwnFiles> read_csv(const std::string& path, const OwnOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::open(path));
  TextLines lines(without_byte_order_mark(text_of(file.bytes())));
  lines.next();
  const auto check_length = [&] {
    return lines.is_too_long() ? wrong_line(path, lines.number(), fmt::format("longer than {} bytes", kLongestLine))
                               : Status();
  };
  SYNCOPATE_RETURN_IF_ERROR(check_length());
  SYNCOPATE_ASSIGN_OR_RETURN(const TableHeader header, header_of(lines.line(), options, path));
  TableLines table(header, path);
  std::vector<std::string> fields;
  while (lines.next()) {
    SYNCOPATE_RETURN_IF_ERROR(check_length());
    if (lines.is_blank_to_the_end()) break;
    if (const std::string wrong = split_csv(lines.line(), header.separator, fields); !wrong.empty()) {
      return wrong_line(path, lines.number(), wrong);
    }
    if (fields.size() != header.names.size()) {
      return wrong_line(
          path, lines.number(),
          fmt::format("{} columns, expected {} as in the first line", fields.size(), header.names.size()));
    }
    SYNCOPATE_RETURN_IF_ERROR(table.take(fields, lines.number()));
  }
  return table.finish();
}

}  // namespace syncopate::worker

#include "worker/data/own/target_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include "common/text/printable_text.h"
#include "worker/data/own/csv_fields.h"

namespace syncopate::worker {
namespace {

using Columns = std::vector<const TargetColumn*>;

bool has_texts(const Columns& columns) {
  return std::ranges::any_of(columns, [](const TargetColumn* column) { return !column->texts.empty(); });
}

Status check_numbers(const TargetColumn& column) {
  const auto wrong =
      std::ranges::find_if(column.numbers, [](double number) { return !std::isfinite(static_cast<float>(number)); });
  if (wrong == column.numbers.end()) return {};
  return Status::data_loss(fmt::format("{} is {}, expected a finite number within 3.4e38",
                                       place_of(column, wrong - column.numbers.begin()), *wrong));
}

std::string text_of_number(double number) { return fmt::format("{}", number); }

// By its place in the sorted classes.
template <typename Value>
int class_of(const std::vector<Value>& classes, const Value& value) {
  return static_cast<int>(std::ranges::lower_bound(classes, value) - classes.begin());
}

Status check_classes(std::size_t classes, const TargetColumn& column) {
  if (classes > kMostClasses) {
    return Status::invalid_argument(
        fmt::format("{}: '{}' has {} different values, and a model tells {} classes apart "
                    "at most",
                    column.path, printable(column.name, 80), classes, kMostClasses));
  }
  if (classes > 1) return {};
  return Status::data_loss(
      fmt::format("{}: '{}' has one value, expected two classes or more", column.path, printable(column.name, 80)));
}

// Texts of a table may be numbers; those of arrays are what their type says.
std::optional<double> number_in(const TargetColumn& column, std::int64_t sample) {
  const auto at = static_cast<std::size_t>(sample);
  if (column.texts.empty()) return column.numbers[at];
  return column.is_table ? number_of_field(column.texts[at]) : std::nullopt;
}

// Numbers among which a few texts stand are numbers still: classes would be made of a value that is missing or
// misspelt. They may be classes where the texts are words and the numbers few and whole, as 0, 1, 2 and "more" are.
Status check_no_text_among_numbers(const Columns& columns, Task task) {
  if (task == Task::kClasses) return {};
  std::set<double> numbers;
  bool are_whole = true, any_missing = false;
  std::optional<std::pair<const TargetColumn*, std::int64_t>> text;
  for (const TargetColumn* column : columns) {
    for (std::int64_t sample = 0; sample < column->size(); ++sample) {
      if (const std::optional<double> number = number_in(*column, sample)) {
        numbers.insert(*number);
        are_whole = are_whole && *number == std::floor(*number);
        continue;
      }
      const bool is_missing = means_missing(column->texts[static_cast<std::size_t>(sample)]);
      if (!text || (is_missing && !any_missing)) text = {column, sample};
      any_missing = any_missing || is_missing;
    }
  }
  if (!text) return {};
  const bool may_be_classes = numbers.empty() || (are_whole && numbers.size() <= kMostAutoClasses && !any_missing);
  if (may_be_classes && task == Task::kAuto) return {};
  const std::string& wrong = text->first->texts[static_cast<std::size_t>(text->second)];
  const std::string place = place_of(*text->first, text->second);
  if (numbers.empty()) {
    return Status::invalid_argument(
        fmt::format("--task=regression: {} is '{}', expected numbers", place, printable(wrong, 80)));
  }
  return Status::data_loss(
      fmt::format("{} is '{}', expected a number within 3.4e38 as others are: leave the line out of the file, or say "
                  "--task=classes if each text is a class",
                  place, printable(wrong, 80)));
}

std::vector<std::string> texts_of_column(const TargetColumn& column) {
  if (!column.texts.empty()) return column.texts;
  std::vector<std::string> texts;  // numbers, where another part has texts
  std::ranges::transform(column.numbers, std::back_inserter(texts), text_of_number);
  return texts;
}

Result<std::vector<TargetValues>> classes_of_texts(const Columns& columns) {
  std::set<std::string> seen;
  std::vector<std::vector<std::string>> texts;
  for (const TargetColumn* column : columns) {
    texts.push_back(texts_of_column(*column));
    seen.insert(texts.back().begin(), texts.back().end());
  }
  const std::vector<std::string> classes(seen.begin(), seen.end());
  SYNCOPATE_RETURN_IF_ERROR(check_classes(classes.size(), *columns.front()));
  std::vector<TargetValues> values;
  for (const std::vector<std::string>& column : texts) {
    TargetValues& of_column = values.emplace_back(TargetValues{.names = classes});
    for (const std::string& text : column) of_column.labels.push_back(class_of(classes, text));
  }
  return values;
}

Result<std::vector<TargetValues>> classes_of_numbers(const Columns& columns, Task task) {
  std::set<double> seen;
  for (const TargetColumn* column : columns) seen.insert(column->numbers.begin(), column->numbers.end());
  const TargetColumn& first = *columns.front();
  if (task == Task::kAuto && seen.size() > kMostAutoClasses) {
    return Status::invalid_argument(
        fmt::format("{}: '{}' has {} different whole numbers; say what they are: --task=classes or --task=regression",
                    first.path, printable(first.name, 80), seen.size()));
  }
  const std::int64_t samples =
      std::accumulate(columns.begin(), columns.end(), std::int64_t{0},
                      [](std::int64_t sum, const TargetColumn* column) { return sum + column->size(); });
  const bool are_whole = std::ranges::all_of(columns, &TargetColumn::whole);
  if ((!are_whole || seen.size() > kMostAutoClasses) && 2 * std::ssize(seen) > samples) {
    return Status::invalid_argument(fmt::format(
        "--task=classes: {}: '{}' has {} different numbers in {} samples, and a class needs several samples; "
        "--task=regression predicts numbers",
        first.path, printable(first.name, 80), seen.size(), samples));
  }
  const std::vector<double> classes(seen.begin(), seen.end());
  SYNCOPATE_RETURN_IF_ERROR(check_classes(classes.size(), first));
  std::vector<TargetValues> values;
  for (const TargetColumn* column : columns) {
    TargetValues& of_column = values.emplace_back();
    std::ranges::transform(classes, std::back_inserter(of_column.names), text_of_number);
    for (const double number : column->numbers) of_column.labels.push_back(class_of(classes, number));
  }
  return values;
}

}  // namespace

std::string place_of(const TargetColumn& column, std::int64_t sample) {
  if (!column.is_table) return fmt::format("{}: sample {}", column.path, sample);
  return fmt::format("{}: line {}: column '{}'", column.path, sample + 1 + column.lines_above,
                     printable(column.name, 80));
}

Result<std::vector<TargetValues>> target_values(const Columns& columns, Task task) {
  if (has_texts(columns)) {
    SYNCOPATE_RETURN_IF_ERROR(check_no_text_among_numbers(columns, task));
    return classes_of_texts(columns);
  }
  for (const TargetColumn* column : columns) SYNCOPATE_RETURN_IF_ERROR(check_numbers(*column));
  const bool are_whole = std::ranges::all_of(columns, [](const TargetColumn* column) { return column->whole; });
  if (task == Task::kClasses || (task == Task::kAuto && are_whole)) return classes_of_numbers(columns, task);
  std::vector<TargetValues> values;
  for (const TargetColumn* column : columns) {
    values.push_back({.regression = true, .labels = {}, .names = {}, .numbers = column->numbers});
  }
  return values;
}

}  // namespace syncopate::worker

#include "experiments/lab/why/step_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace syncopate::experiments {
namespace {

constexpr int kMostRanks = 100000;   // far more workers and shards than a run can have
constexpr double kMostValue = 1e18;  // far more bytes or microseconds than a step can have

void split_cells(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  while (true) {
    const std::size_t end = line.find(',');
    cells.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

bool read_cell(std::string_view cell, double& value) {
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size();
}

using Setter = std::function<void(StepRow&, double)>;

struct Column {
  const char* name;
  bool is_old;     // all runs have it
  bool may_empty;  // an empty cell says that it is not known
  Setter set;
};

constexpr std::string_view kLossColumn = "loss";  // may be no number, where a run has diverged

// A member that counts microseconds.
Setter in_us(double StepRow::*member) {
  return [member](StepRow& row, double value) { row.*member = value / 1e3; };
}
Setter as_is(double StepRow::*member) {
  return [member](StepRow& row, double value) { row.*member = value; };
}
int rank_in(double value) { return static_cast<int>(std::clamp(value, -1.0, static_cast<double>(kMostRanks))); }

std::vector<Column> columns_of_steps() {
  return {
      {"worker", true, false, [](StepRow& row, double value) { row.worker = rank_in(value); }},
      {"step", true, false, [](StepRow& row, double value) { row.step = std::llround(std::clamp(value, 0.0, 1e15)); }},
      {"end_s", true, false, [](StepRow& row, double value) { row.end = value * 1e3; }},
      {"total_us", true, false, in_us(&StepRow::total)},
      {"data_us", true, false, in_us(&StepRow::data)},
      {"forward_us", true, false, in_us(&StepRow::forward)},
      {"backward_us", true, false, in_us(&StepRow::backward)},
      {"straggle_us", true, false, in_us(&StepRow::straggle)},
      {"exposed_wait_us", true, false, in_us(&StepRow::wait)},
      {"optimizer_us", true, false, in_us(&StepRow::optimizer)},
      {"communication_us", true, false, in_us(&StepRow::communication)},
      {"codec_us", true, false, in_us(&StepRow::codec)},
      {"bytes_out", true, false, as_is(&StepRow::bytes_out)},
      {"bytes_in", true, false, as_is(&StepRow::bytes_in)},
      {"dropped", true, false, as_is(&StepRow::dropped)},
      {"samples", true, false, as_is(&StepRow::samples)},
      {"backward_codec_us", false, false, in_us(&StepRow::backward_codec)},
      {"core_wait_us", false, true, [](StepRow& row, double value) { row.core_wait = value / 1e3; }},
      {"compute_core_wait_us", false, true, in_us(&StepRow::compute_core_wait)},
      {"last_shard", false, true, [](StepRow& row, double value) { row.last_shard = rank_in(value); }},
      {"last_shard_us", false, false, in_us(&StepRow::last_shard_alone)},
      {kLossColumn.data(), false, true, as_is(&StepRow::loss)},
  };
}

}  // namespace

Result<std::vector<StepRow>> read_steps(std::string_view csv, int repeat) {
  std::vector<std::string_view> cells;
  const std::size_t end_of_header = csv.find('\n');
  split_cells(csv.substr(0, end_of_header), cells);
  const std::vector<std::string_view> names = cells;
  const auto place_of = [&](std::string_view name) { return std::ranges::find(names, name) - names.begin(); };
  const auto absent = static_cast<std::ptrdiff_t>(names.size());
  std::vector<std::pair<std::size_t, Column>> wanted;
  for (Column& column : columns_of_steps()) {
    const std::ptrdiff_t place = place_of(column.name);
    if (place == absent && column.is_old) return Status::data_loss(fmt::format("has no column {}", column.name));
    if (place != absent) wanted.emplace_back(static_cast<std::size_t>(place), std::move(column));
  }
  const std::ptrdiff_t repeats = place_of("repeat");
  if (repeats == absent) return Status::data_loss("has no column repeat");
  std::vector<StepRow> rows;
  csv.remove_prefix(end_of_header + 1);
  for (int number = 2; !csv.empty(); ++number) {
    const std::size_t end = csv.find('\n');
    split_cells(csv.substr(0, end), cells);
    double its_repeat = -1;
    StepRow row;
    bool is_row = end != std::string_view::npos && cells.size() == names.size() &&
                  read_cell(cells[static_cast<std::size_t>(repeats)], its_repeat) && std::isfinite(its_repeat);
    for (const auto& [place, column] : wanted) {
      if (!is_row) break;
      double value = 0;
      if (column.may_empty && cells[place].empty()) continue;
      is_row = read_cell(cells[place], value) && (std::abs(value) <= kMostValue || column.name == kLossColumn);
      if (std::isfinite(value)) column.set(row, value);
    }
    if (!is_row || row.worker < 0) return Status::data_loss(fmt::format("line {} is no step, or not whole", number));
    if (its_repeat == repeat) rows.push_back(row);
    csv.remove_prefix(end + 1);
  }
  return rows;
}

}  // namespace syncopate::experiments

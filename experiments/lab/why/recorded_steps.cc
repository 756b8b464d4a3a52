#include "experiments/lab/why/recorded_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/step_fields.h"
#include "common/text/printable_text.h"
#include "common/text/split_text.h"

namespace syncopate::experiments {
namespace {

constexpr int kMostRanks = 100000;  // far more workers than a run can have

// Returns the rank or the repeat in a cell; -1 if there is none.
int number_in(std::string_view cell) {
  int number = -1;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return error == std::errc() && end == cell.data() + cell.size() && number <= kMostRanks ? number : -1;
}

}  // namespace

Result<RecordedSteps> read_steps(std::string_view csv, int repeat) {
  const std::size_t end_of_header = csv.find('\n');
  const std::vector<std::string_view> names = split_text(csv.substr(0, end_of_header), ',');
  if (csv.empty()) return Status::data_loss("is empty");
  const auto place_of = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  const std::size_t absent = names.size(), repeats = place_of("repeat"), workers = place_of("worker");
  for (const char* const name : {"worker", "repeat"}) {
    if (place_of(name) == absent) return Status::data_loss(fmt::format("has no column {}", name));
  }
  std::vector<std::pair<std::size_t, const StepField*>> wanted;
  for (const StepField& field : step_fields()) {
    if (field.column == nullptr) continue;
    const std::size_t place = place_of(field.column);
    if (place == absent && !field.is_later) return Status::data_loss(fmt::format("has no column {}", field.column));
    if (place != absent) wanted.emplace_back(place, &field);
  }
  RecordedSteps steps;
  csv.remove_prefix(end_of_header + 1);
  for (int number = 2; !csv.empty(); ++number) {
    const std::size_t end = csv.find('\n');
    const std::vector<std::string_view> cells = split_text(csv.substr(0, end), ',');
    if (end == std::string_view::npos) {
      return Status::data_loss(fmt::format(
          "its last line, {}, is cut off, as where the run was killed or the disk was full; delete that line, and the "
          "steps before it are read",
          number));
    }
    if (cells.size() != names.size() || number_in(cells[repeats]) < 0 || number_in(cells[workers]) < 0) {
      return Status::data_loss(fmt::format("line {} is no step, or not whole", number));
    }
    StepRecord record;
    for (const auto& [place, field] : wanted) {
      if (read_cell(*field, cells[place], record)) continue;
      return Status::data_loss(fmt::format("line {} is no step, or not whole: {} cannot be '{}'", number, field->column,
                                           printable(cells[place], 40)));
    }
    if (number_in(cells[repeats]) == repeat) steps.of_workers[number_in(cells[workers])].push_back(record);
    csv.remove_prefix(end + 1);
  }
  return steps;
}

std::size_t RecordedSteps::count() const {
  std::size_t count = 0;
  for (const auto& [worker, its] : of_workers) count += its.size();
  return count;
}

std::vector<StepOfWorker> RecordedSteps::by_end() const {
  std::vector<StepOfWorker> all;
  for (const auto& [worker, its] : of_workers) {
    for (const StepRecord& step : its) all.push_back({worker, &step});
  }
  std::ranges::stable_sort(all, {}, [](const StepOfWorker& each) { return each.step->end; });
  return all;
}

}  // namespace syncopate::experiments

#include "experiments/lab/report/comparison_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/os/whole_file.h"
#include "experiments/lab/report/csv_text.h"

namespace syncopate::experiments {
namespace {

std::string number(double value) { return fmt::format("{:.6g}", value); }

// Returns "" for none, which pandas reads as missing.
std::string number(const std::optional<double>& value) { return value ? number(*value) : std::string(); }

std::optional<double> headline(const RunReport& report) { return final_headline(report); }

struct Cell {
  std::string column, text;
};

// Returns the cells that identify `round` of `row`.
std::vector<Cell> which(const ComparisonReport& report, const ComparedRow& row, std::size_t index, std::size_t round) {
  std::vector<Cell> cells = {{"label", csv_text(row.label)}, {"mode", csv_text(row.mode)}};
  for (const std::string& option : report.varied) {
    const auto value = std::ranges::find(row.values, option, &std::pair<std::string, std::string>::first);
    cells.push_back({"vary:" + option, value == row.values.end() ? "" : csv_text(value->second)});
  }
  std::optional<std::size_t> place;
  if (round < report.order.size()) {
    const auto found = std::ranges::find(report.order[round], index);
    if (found != report.order[round].end()) place = static_cast<std::size_t>(found - report.order[round].begin());
  }
  cells.push_back({"round", std::to_string(round)});
  cells.push_back({"place_in_round", place ? std::to_string(*place) : ""});
  cells.push_back({"seed", round < row.seeds.size() ? std::to_string(row.seeds[round]) : ""});
  cells.push_back({"learning_rate", row.rate > 0 ? number(row.rate) : ""});
  cells.push_back({"updates_a_pass", row.updates_a_pass > 0 ? number(row.updates_a_pass) : ""});
  return cells;
}

std::vector<Cell> measured(const RunReport& report, std::int64_t parameters) {
  const auto bits = [&](double bytes) { return parameters > 0 ? 8 * bytes / static_cast<double>(parameters) : 0.0; };
  const MachineLoad machine = report.machine.value_or(MachineLoad());
  return {{"samples_per_second", number(report.samples_per_second)},
          {"used_samples", std::to_string(report.used_samples)},
          {"goodput", number(report.goodput)},
          {"training_seconds", number(report.training_seconds)},
          {"window_samples_per_second", report.window ? number(report.window->samples_per_second) : ""},
          {"step_ms_median", number(report.step_ms_median)},
          {"step_ms_mean", number(report.split_ms.step)},
          {"exposed_wait_ms", number(report.split_ms.exposed_wait)},
          {"communication_ms", number(report.communication_ms)},
          {"codec_ms", number(report.codec_ms)},
          {"bytes_out_per_step", fmt::format("{:.0f}", report.bytes_out_per_step)},
          {"bytes_in_per_step", fmt::format("{:.0f}", report.bytes_in_per_step)},
          {"bits_per_parameter_out", number(bits(report.bytes_out_per_step))},
          {"bits_per_parameter_in", number(bits(report.bytes_in_per_step))},
          {"staleness_mean", number(report.staleness_mean)},
          {"dropped", number(report.dropped)},
          {"worker_memory_bytes", std::to_string(report.memory.worker)},
          {"server_memory_bytes", std::to_string(report.memory.server)},
          {"memory_bytes", std::to_string(report.memory.all)},
          {"final_test_accuracy", number(report.final_test_accuracy)},
          {"final_test_headline", number(headline(report))},
          {"final_test_loss", number(report.final_test_loss)},
          {"final_train_loss", number(report.final_train_loss)},
          {"seconds_to_target", number(report.seconds_to_target)},
          {"samples_to_target", report.samples_to_target ? std::to_string(*report.samples_to_target) : ""},
          {"cores_own", number(machine.own)},
          {"cores_others", number(machine.others)},
          {"cores_steal", number(machine.steal)}};
}

std::string line_of(const std::vector<Cell>& cells, std::string Cell::*member) {
  std::string line;
  for (const Cell& cell : cells) line += (line.empty() ? "" : ",") + cell.*member;
  return line + "\n";
}

}  // namespace

std::string comparison_csv(const ComparisonReport& report) {
  const auto cells_of = [&](const ComparedRow& row, std::size_t index, std::size_t round, const RunReport& of) {
    std::vector<Cell> cells = which(report, row, index, round);
    for (Cell& cell : measured(of, row.parameters)) cells.push_back(std::move(cell));
    return cells;
  };
  std::string csv = line_of(cells_of({}, 0, 0, {}), &Cell::column);
  for (std::size_t index = 0; index < report.rows.size(); ++index) {
    const ComparedRow& row = report.rows[index];
    for (std::size_t round = 0; round < row.rounds.size(); ++round) {
      if (row.rounds[round]) csv += line_of(cells_of(row, index, round, *row.rounds[round]), &Cell::text);
    }
  }
  return csv;
}

Status write_comparison(const ComparisonReport& report, const std::string& folder) {
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/comparison.csv", comparison_csv(report)));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/comparison.json", comparison_json(report)));
  return write_whole_file(folder + "/comparison.html", comparison_html(report));
}

}  // namespace syncopate::experiments

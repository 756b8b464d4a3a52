// A comparison as it could have been measured.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

inline RunReport sample_round(double samples_per_second) {
  RunReport report;
  report.samples_per_second = samples_per_second;
  report.training_seconds = 120'000 / samples_per_second;
  report.used_samples = 120'000;
  report.goodput = 0.625;
  report.window = SteadyWindow{.seconds = 10, .samples_per_second = 1.25 * samples_per_second, .steps = 700};
  report.step_ms_median = 1.9;
  report.split_ms = {.step = 2, .exposed_wait = 0.5};
  report.communication_ms = 1.2;
  report.bytes_out_per_step = 1'080'000;
  report.bytes_in_per_step = 1'080'000;
  report.memory = {.worker = 50'000'000, .server = 0, .all = 100'000'000};
  report.staleness_mean = 2.5;
  report.final_test_accuracy = 0.9731;
  report.final_test_loss = 0.125;
  return report;
}

// One that ran at each of `speeds`.
inline ComparedRow sample_row(const std::string& mode, const std::vector<double>& speeds) {
  ComparedRow row{.label = mode, .mode = mode, .rate = 0.1, .updates_a_pass = 100, .parameters = 270'000};
  for (const double speed : speeds) {
    row.rounds.push_back(sample_round(speed));
    row.seeds.push_back(row.seeds.size() + 1);
    row.evals.push_back({{.training_seconds = 1, .accuracy = 0.5}, {.training_seconds = 2, .accuracy = 0.9731}});
    row.folders.push_back("out/" + mode);
  }
  return row;
}

inline ComparedRow sample_row(const std::string& mode, const std::string& servers, const std::vector<double>& speeds) {
  ComparedRow row = sample_row(mode, speeds);
  row.label += " servers=" + servers;
  row.values = {{"servers", servers}};
  return row;
}

// One that ended at each of `accuracies`, on `test_labels` labels.
inline ComparedRow learnt(ComparedRow row, const std::vector<double>& accuracies, std::int64_t test_labels = 2000) {
  for (std::size_t round = 0; round < accuracies.size(); ++round) {
    row.rounds.at(round)->final_test_accuracy = accuracies[round];
    row.rounds.at(round)->test_labels = test_labels;
  }
  return row;
}

inline ComparisonReport sample_comparison(std::vector<ComparedRow> rows) {
  ComparisonReport report{.job = "mlp <on> digits", .rows = std::move(rows)};
  if (!report.rows.empty()) report.rounds_asked = report.rows.front().rounds.size();
  return report;
}

}  // namespace syncopate::experiments

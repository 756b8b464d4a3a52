// Runs whose workers have parts of the model, for tests of what these send, hold and wait for.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::testing_support::divided_runs {

using Flags = std::vector<std::string>;

inline constexpr int kBatch = 8, kSteps = 6;
inline const Flags kSmall{"--train-samples=2000", "--test-samples=100", "--evaluate-every=100epochs",
                          fmt::format("--steps={}", kSteps)};

// Returns the cells of all workers, from that step on.
inline std::vector<double> numbers(const Program& program, const std::string& column, int first_step = 0) {
  std::vector<double> values;
  const std::vector<std::string> cells = program.column("steps.csv", column),
                                 steps = program.column("steps.csv", "step");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (std::stoi(steps[i]) >= first_step) values.push_back(std::stod(cells[i]));
  }
  return values;
}

inline double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

inline double greatest_gap(const std::vector<float>& first, const std::vector<float>& second) {
  EXPECT_EQ(first.size(), second.size());
  EXPECT_FALSE(first.empty());
  double gap = 0;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    gap = std::max(gap, std::abs(static_cast<double>(first[i]) - static_cast<double>(second[i])));
  }
  return gap;
}

inline std::vector<float> weights_after(const Flags& flags) {
  Program program(flags);
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  return program.weights();
}

// Returns the peak of memory of each worker, of a model of six layers, of which four are of 2048 x 2048.
inline std::vector<double> peaks_of(const Flags& flags) {
  const Flags job{"--mode=allreduce", "--model=mlp:784-2048-2048-2048-2048-2048-10", "--optimizer=adam",
                  "--batch-size=4", "--transport=sockets"};
  Program program(kSmall + job + flags);
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  std::vector<double> bytes;
  const nlohmann::json peaks = program.summary()["peak_memory_bytes"];
  for (const auto& [process, peak] : peaks.items()) {
    if (process.starts_with("worker")) bytes.push_back(peak.get<double>());
  }
  return bytes;
}

}  // namespace syncopate::testing_support::divided_runs

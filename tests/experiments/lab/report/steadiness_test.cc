#include "experiments/lab/report/steadiness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/random.h"

namespace syncopate::experiments {
namespace {

ComparisonReport report_of(const std::vector<std::vector<double>>& speeds) {
  ComparisonReport report;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    ComparedRow row{.label = "row " + std::to_string(i)};
    for (const double speed : speeds[i]) {
      RunReport round;
      round.samples_per_second = speed;
      row.rounds.emplace_back(round);
    }
    report.rows.push_back(std::move(row));
  }
  return report;
}

// The machine warms up: all rows become 3 % slower from round to round, about which each varies.
TEST(Drift, IsATrendOfAllRows) {
  std::vector<std::vector<double>> speeds(3);
  Random random(3);
  for (int round = 0; round < 8; ++round) {
    for (std::size_t row = 0; row < speeds.size(); ++row) {
      const double noise = 1 + 0.01 * (random.uniform() - 0.5);
      speeds[row].push_back(100.0 * static_cast<double>(row + 1) * std::pow(0.97, round) * noise);
    }
  }
  const std::optional<Drift> drift = drift_of(report_of(speeds));
  ASSERT_TRUE(drift.has_value());
  EXPECT_NEAR(drift->a_round, 0.97, 0.005);
  EXPECT_EQ(drift->rounds, 8u);
}

TEST(Drift, IsSeldomFoundInNoise) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    std::vector<std::vector<double>> speeds(2);
    for (int round = 0; round < 10; ++round) {
      for (auto& row : speeds) row.push_back(100 + 10 * random.uniform());
    }
    found += drift_of(report_of(speeds)).has_value() ? 1 : 0;
  }
  EXPECT_LT(found, 15) << "1 in 100 of 500";
}

TEST(Drift, IsNoneOfWhatDoesNotVary) {
  EXPECT_FALSE(drift_of(report_of({{5, 5, 5, 5, 5, 5}})).has_value());
  EXPECT_FALSE(drift_of(report_of({{5, 4, 3}})).has_value());
}

}  // namespace
}  // namespace syncopate::experiments

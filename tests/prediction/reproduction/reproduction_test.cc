#include "prediction/reproduction/reproduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace syncopate::prediction {
namespace {

using testing::HasSubstr;

class ATable : public testing::TestWithParam<std::string> {};

TEST_P(ATable, HoldsItsBar) {
  const Result<Reproduction> table = reproduce(GetParam());
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_LE(table->median_error(), table->median_bar);
  EXPECT_LE(table->worst_error(), table->worst_bar);
  EXPECT_TRUE(table->holds());
}

TEST_P(ATable, ComesOutWhereItIsCalibratedAndSaysWhere) {
  const Reproduction table = *reproduce(GetParam());
  EXPECT_FALSE(table.source.empty());
  EXPECT_EQ(table.name, GetParam());
  bool calibrated = false;
  for (const ReproducedCell& cell : table.cells) {
    EXPECT_TRUE(std::isfinite(cell.predicted) && cell.predicted > 0 && cell.measured > 0) << cell.setup;
    if (cell.use != CellUse::kCalibrated) continue;
    calibrated = true;
    EXPECT_NEAR(cell.error(), 0, cell.has_interval() ? 0.05 : 1e-6) << cell.setup << ", " << cell.workers;
  }
  EXPECT_EQ(calibrated, !table.calibrated.empty());
}

INSTANTIATE_TEST_SUITE_P(Reproduction, ATable, testing::ValuesIn(reproduction_names()), [](const auto& table) {
  std::string name = table.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(Reproduction, ListsTheTablesForAnUnknownName) {
  const Status status = reproduce("piz").status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("piz: no such table; there are ring, byteps-forms, nccl-links, piz-daint"));
}

TEST(Reproduction, CountsPredictedCellsAlone) {
  const Reproduction table{.cells = {{.measured = 1, .predicted = 1.1},
                                     {.measured = 1, .predicted = 0.7},
                                     {.measured = 1, .predicted = 1.2},
                                     {.measured = 1, .predicted = 5, .use = CellUse::kLeftOut},
                                     {.measured = 1, .predicted = 9, .use = CellUse::kCalibrated}}};
  EXPECT_NEAR(table.median_error(), 0.2, 1e-9);
  EXPECT_NEAR(table.worst_error(), 0.3, 1e-9);
}

TEST(Reproduction, CountsThoseInsideTheirIntervals) {
  Reproduction table{.cells = {{.measured = 1, .predicted = 1.1, .low = 0.9, .high = 1.2},
                               {.measured = 1, .predicted = 1.1, .low = 1.01, .high = 1.2},
                               {.measured = 1, .predicted = 1.1},
                               {.measured = 1, .predicted = 1, .use = CellUse::kLeftOut, .low = 0.9, .high = 1.1}},
                     .median_bar = 1,
                     .worst_bar = 1,
                     .inside_bar = 0.5};
  EXPECT_EQ(table.judged_by_intervals(), 2);
  EXPECT_EQ(table.inside_intervals(), 1);
  EXPECT_TRUE(table.holds());
  table.inside_bar = 0.6;
  EXPECT_FALSE(table.holds());
}

}  // namespace
}  // namespace syncopate::prediction

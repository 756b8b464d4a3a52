#include "experiments/lab/report/step_parts_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ComparedRow explained_row(const std::string& mode, StepParts step) {
  ComparedRow row = sample_row(mode, {1000});
  row.step = std::move(step);
  return row;
}

StepParts thin_link(double link_ms) {
  return {.ideal_ms = 5,
          .measured_ms = 5.03 + link_ms,
          .parts = {{"data", 0.02}, {"thin link", link_ms}, {"other", 0.01}},
          .why = "What costs most is a thin link.",
          .samples_per_second = 64e3 / (5.03 + link_ms)};
}

TEST(StepPartsTable, HasAColumnForEachPartThatCountsAndAddsUp) {
  const auto table =
      step_parts_table(sample_comparison({explained_row("allreduce", thin_link(4)), sample_row("local", {1000})}));
  ASSERT_TRUE(table);
  EXPECT_THAT(table->rows, ElementsAre(ElementsAre("mode", "ideal", "thin link", "rest", "measured", "of ideal"),
                                       ElementsAre("allreduce", "5", "4", "0.03", "9.03", "55 %")));
  EXPECT_THAT(table->sentences, ElementsAre("allreduce: What costs most is a thin link."));
  EXPECT_THAT(table->title, Not(HasSubstr("closed form")));
}

TEST(StepPartsTable, HoldsTheMeasurementAgainstClosedForms) {
  StepParts step = thin_link(4.97);
  step.predicted = 8000;
  const auto table = step_parts_table(
      sample_comparison({explained_row("allreduce", step), explained_row("ps:softsync:2", thin_link(4))}));
  ASSERT_TRUE(table);
  EXPECT_THAT(table->rows[0], testing::Contains("measured of it"));
  EXPECT_EQ(table->rows[1].at(6), "8,000");
  EXPECT_EQ(table->rows[1].at(7), "80 %");
  EXPECT_EQ(table->rows[2].at(6), "-");
}

TEST(StepPartsTable, ExplainsTheFastestRowOfALongTableAndTheOneThatLosesMost) {
  const auto table =
      step_parts_table(sample_comparison({explained_row("a", thin_link(4)), explained_row("b", thin_link(1)),
                                          explained_row("c", thin_link(9)), explained_row("d", thin_link(2))}));
  ASSERT_TRUE(table);
  EXPECT_THAT(table->sentences,
              ElementsAre("b: What costs most is a thin link.", "c: What costs most is a thin link."));
}

TEST(StepPartsTable, IsLeftOutWhereNothingIsKnown) {
  EXPECT_FALSE(step_parts_table(sample_comparison({sample_row("local", {1000})})));
}

}  // namespace
}  // namespace syncopate::experiments

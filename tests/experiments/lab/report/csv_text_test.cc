#include "experiments/lab/report/csv_text.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(CsvText, CannotLeaveItsCell) {
  EXPECT_EQ(csv_text("a, b"), "\"a, b\"");
  EXPECT_EQ(csv_text("a \"b\""), "\"a \"\"b\"\"\"");
}

}  // namespace
}  // namespace syncopate::experiments

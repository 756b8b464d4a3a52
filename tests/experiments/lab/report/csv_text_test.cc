#include "experiments/lab/report/csv_text.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(CsvText, CannotLeaveItsCell) {
  EXPECT_EQ(csv_text("a, b"), "\"a, b\"");
  EXPECT_EQ(csv_text("a \"b\""), "\"a \"\"b\"\"\"");
}

TEST(CsvText, IsNoFormulaInASpreadsheet) {
  for (const char begin : {'=', '+', '-', '@', '\t', '\r', '\n'}) {
    const std::string text = begin + std::string("HYPERLINK(\"x\")");
    EXPECT_EQ(csv_text(text), "\"'" + (begin + std::string("HYPERLINK(\"\"x\"\")\""))) << begin;
  }
  EXPECT_EQ(csv_text("ps:async a=b"), "\"ps:async a=b\"");
  EXPECT_EQ(csv_text(""), "\"\"");
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/lab/report/text_table.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(TextTable, AlignsTheFirstColumnLeftAndOthersRight) {
  EXPECT_EQ(text_table({{"mode", "rate"}, {"ps", "1 ± 2"}, {"allreduce", "10"}}),
            "mode        rate\n"
            "ps         1 ± 2\n"
            "allreduce     10\n");
  EXPECT_EQ(text_table({{"alone"}}), "alone\n");
  EXPECT_EQ(text_table({}), "");
}

TEST(TextTable, PutsALongNameAboveItsFigures) {
  const std::string name(70, 'n');
  EXPECT_EQ(text_table({{"name", "ms", "samples/s"}, {name, "12", "3"}}),
            "name\n"
            "    ms  samples/s\n" +
                name +
                "\n"
                "    12          3\n");
}

TEST(TextTable, GoesOnBelowWithColumnsThatDoNotFit) {
  const std::string wide(38, 'w');
  EXPECT_EQ(text_table({{"mode", "a", "b", "c"}, {"ps", wide, wide.substr(1), "1"}}),
            "mode  " + std::string(37, ' ') + "a\nps    " + wide + "\n\nmode  " + std::string(36, ' ') +
                "b  c\nps    " + wide.substr(1) + "  1\n");
}

TEST(TextTable, GoesOnBelowWhereItIsCut) {
  EXPECT_EQ(text_table({{"mode", "a", "b", "c"}, {"ps", "1", "2", "3"}}, {"c"}),
            "mode  a  b\nps    1  2\n\nmode  c\nps    3\n");
}

TEST(TextTable, IsCutWhereItDoesNotFitBesideItsCuts) {
  const std::string wide(38, 'w'), blank(37, ' ');
  EXPECT_EQ(
      text_table({{"mode", "a", "b", "c"}, {"ps", wide, wide, "3"}}, {"c"}),
      "mode  " + blank + "a\nps    " + wide + "\n\nmode  " + blank + "b\nps    " + wide + "\n\nmode  c\nps    3\n");
  const std::string name(60, 'n');
  EXPECT_EQ(text_table({{"mode", "a", "b"}, {name, wide, "3"}}, {"b"}),
            "mode\n    " + blank + "a\n" + name + "\n    " + wide + "\n\nmode\n    b\n" + name + "\n    3\n");
}

}  // namespace
}  // namespace syncopate::experiments

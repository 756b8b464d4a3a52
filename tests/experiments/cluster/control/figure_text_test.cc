#include "experiments/cluster/control/figure_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "experiments/cluster/control/test_figures.h"

namespace syncopate::experiments {
namespace {

TEST(FigureText, HasFourDigitsUntilTheFigureIsHuge) {
  EXPECT_EQ(figure_text(0.12344), "0.1234");
  EXPECT_EQ(figure_text(-99999), "-99999.0000");
  EXPECT_EQ(figure_text(1.5e29), "1.5e+29");
  EXPECT_EQ(figure_text(-123456), "-123456");
  EXPECT_EQ(figure_text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(figure_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(FigureText, IsThatOfTestFigures) {
  EXPECT_EQ(to_text(ValidationFigures{.accuracy = 0.5, .loss = 1e29}), "validation loss 1e+29, accuracy 0.5000");
  EXPECT_EQ(to_text(0, TestFigures{.r2 = -2e30, .rmse = 1e20}), "R2 -2e+30, RMSE 1e+20");
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/lab/report/statistics.h"

#include <gtest/gtest.h>

#include <tuple>

namespace syncopate::experiments {
namespace {

// An entry of any table of the distribution: degrees of freedom, p to both sides, t.
class StudentT : public testing::TestWithParam<std::tuple<int, double, double>> {};

INSTANTIATE_TEST_SUITE_P(Tabled, StudentT,
                         testing::Values(std::tuple(1, 0.05, 12.7062), std::tuple(2, 0.05, 4.30265),
                                         std::tuple(3, 0.01, 5.84091), std::tuple(4, 0.05, 2.77645),
                                         std::tuple(5, 0.2, 1.47588), std::tuple(7, 0.02, 2.99795),
                                         std::tuple(9, 0.05, 2.26216), std::tuple(10, 0.001, 4.58689),
                                         std::tuple(29, 0.05, 2.04523), std::tuple(120, 0.05, 1.97993)));

TEST_P(StudentT, IsAsTabled) {
  const auto [freedom, p, t] = GetParam();
  EXPECT_NEAR(two_sided_quantile(p, freedom), t, 1e-4 * t);
  EXPECT_NEAR(two_sided_p(t, freedom), p, 1e-4 * p);
  EXPECT_NEAR(two_sided_p(-t, freedom), p, 1e-4 * p);
}

TEST(StudentTLimits, AreCertaintyAtZeroAndNothingFarOut) {
  for (const int freedom : {1, 2, 9, 10}) {
    EXPECT_DOUBLE_EQ(two_sided_p(0, freedom), 1);
    EXPECT_NEAR(two_sided_p(1e9, freedom), 0, 1e-8);
  }
}

}  // namespace
}  // namespace syncopate::experiments

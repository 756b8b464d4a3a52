#include "common/tables/initial_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace syncopate {
namespace {

std::vector<float> row(std::uint64_t seed, std::size_t table, RowKey key) {
  std::vector<float> values(8);
  initial_row(seed, table, key, 0.25f, values);
  return values;
}

TEST(InitialRow, DependsOnSeedTableAndRowAlone) {
  EXPECT_EQ(row(1, 0, 7), row(1, 0, 7));
  EXPECT_NE(row(1, 0, 7), row(2, 0, 7));
  EXPECT_NE(row(1, 0, 7), row(1, 1, 7));
  EXPECT_NE(row(1, 0, 7), row(1, 0, 8));
}

TEST(InitialRow, IsUniformWithinItsLimit) {
  float low = 0, high = 0;
  for (RowKey key = 0; key < 1000; ++key) {
    for (float value : row(3, 0, key)) low = std::min(low, value), high = std::max(high, value);
  }
  EXPECT_GE(low, -0.25f);
  EXPECT_LT(low, -0.249f);
  EXPECT_LE(high, 0.25f);
  EXPECT_GT(high, 0.249f);
}

}  // namespace
}  // namespace syncopate

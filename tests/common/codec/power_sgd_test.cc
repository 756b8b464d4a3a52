#include "common/codec/power_sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "common/random.h"

namespace syncopate::power_sgd {
namespace {

using Dimensions = std::vector<std::int64_t>;

std::vector<float> drawn(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

double dot_of_columns(std::span<const float> factor, std::size_t height, std::size_t a, std::size_t b) {
  double sum = 0;
  for (std::size_t i = 0; i < height; ++i) {
    sum += static_cast<double>(factor[a * height + i]) * static_cast<double>(factor[b * height + i]);
  }
  return sum;
}

// M of a given rank: a product of drawn factors.
std::vector<float> matrix_of_rank(std::size_t rows, std::size_t columns, std::size_t rank) {
  const Shape shape{rows, columns, rank};
  std::vector<float> matrix(shape.elements());
  reconstruct(shape, drawn(shape.left_elements(), 1), drawn(shape.right_elements(), 2), matrix);
  return matrix;
}

// One step for one rank. Returns ‖M - P·Qᵀ‖ / ‖M‖.
double step(const Shape& shape, const std::vector<float>& matrix, std::vector<float>& right) {
  fill_empty_columns(3, shape.columns, right);
  std::vector<float> left(shape.left_elements());
  left_factor(shape, matrix, right, left);
  orthogonalize(shape.rows, left);
  right_factor(shape, matrix, left, right);
  std::vector<float> lost = matrix;
  subtract_product(shape, left, right, lost);
  return norm(lost) / norm(matrix);
}

TEST(PowerSgd, TakesATensorAsItsFirstDimensionByAllOthers) {
  EXPECT_EQ(shape_of(Dimensions{128, 784}, 4), (Shape{128, 784, 4}));
  EXPECT_EQ(shape_of(Dimensions{16, 6, 5, 5}, 2), (Shape{16, 150, 2}));
}

TEST(PowerSgd, LeavesTensorsThatItWouldNotMakeSmaller) {
  EXPECT_EQ(shape_of(Dimensions{128}, 4), std::nullopt);
  EXPECT_EQ(shape_of(Dimensions{}, 4), std::nullopt);
  EXPECT_EQ(shape_of(Dimensions{10, 10}, 5), std::nullopt);
  EXPECT_EQ(shape_of(Dimensions{10, 10}, 4), (Shape{10, 10, 4}));
  EXPECT_EQ(shape_of(Dimensions{1, 100}, 1), std::nullopt);
}

TEST(PowerSgd, MultipliesAsPlainLoopsDo) {
  const Shape shape{3, 19, 2};
  const std::vector<float> matrix = drawn(shape.elements(), 4), right = drawn(shape.right_elements(), 5);
  std::vector<float> left(shape.left_elements()), back(shape.right_elements()), product(shape.elements());
  left_factor(shape, matrix, right, left);
  right_factor(shape, matrix, left, back);
  reconstruct(shape, left, back, product);
  for (std::size_t k = 0; k < shape.rank; ++k) {
    for (std::size_t row = 0; row < shape.rows; ++row) {
      double sum = 0;
      for (std::size_t c = 0; c < shape.columns; ++c) {
        sum += static_cast<double>(matrix[row * shape.columns + c]) * static_cast<double>(right[k * shape.columns + c]);
      }
      EXPECT_NEAR(left[k * shape.rows + row], sum, 1e-5);
    }
    for (std::size_t c = 0; c < shape.columns; ++c) {
      double sum = 0;
      for (std::size_t row = 0; row < shape.rows; ++row) {
        sum += static_cast<double>(matrix[row * shape.columns + c]) * static_cast<double>(left[k * shape.rows + row]);
      }
      EXPECT_NEAR(back[k * shape.columns + c], sum, 1e-4);
    }
  }
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t c = 0; c < shape.columns; ++c) {
      const float expected = left[row] * back[c] + left[shape.rows + row] * back[shape.columns + c];
      EXPECT_NEAR(product[row * shape.columns + c], expected, 1e-4f * std::abs(expected) + 1e-4f);
    }
  }
}

TEST(PowerSgd, MakesColumnsOrthonormal) {
  std::vector<float> left = drawn(100 * 8, 6);
  orthogonalize(100, left);
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = 0; b <= a; ++b) EXPECT_NEAR(dot_of_columns(left, 100, a, b), a == b ? 1 : 0, 1e-5);
  }
}

TEST(PowerSgd, MakesADependentColumnZeroAndAZeroOneStays) {
  std::vector<float> left = drawn(50, 7);
  for (std::size_t i = 0; i < 50; ++i) left.push_back(-3 * left[i]);
  left.resize(150);
  orthogonalize(50, left);
  EXPECT_NEAR(norm(std::span(left).first(50)), 1, 1e-5);
  EXPECT_EQ(norm(std::span(left).subspan(50)), 0);
}

TEST(PowerSgd, FindsAMatrixOfItsRankInOneStep) {
  const std::vector<float> matrix = matrix_of_rank(40, 60, 3);
  std::vector<float> right(60 * 3);
  EXPECT_LT(step({40, 60, 3}, matrix, right), 1e-4);
}

TEST(PowerSgd, ComesCloserWithEveryStepFromAWarmStart) {
  const std::vector<float> matrix = [] {
    std::vector<float> sum = matrix_of_rank(40, 60, 1);
    const std::vector<float> noise = drawn(sum.size(), 9);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += 0.5f * noise[i];
    return sum;
  }();
  std::vector<float> right(60);
  const double first = step({40, 60, 1}, matrix, right);
  double last = first;
  for (int i = 0; i < 5; ++i) last = step({40, 60, 1}, matrix, right);
  EXPECT_LT(last, first);
}

// A matrix of rank 1 leaves the second column empty; it must be there again once the matrix has more.
TEST(PowerSgd, DrawsAnEmptyColumnAnew) {
  const Shape shape{40, 60, 2};
  std::vector<float> right(shape.right_elements());
  EXPECT_LT(step(shape, matrix_of_rank(40, 60, 1), right), 1e-4);
  EXPECT_EQ(norm(std::span(right).subspan(60)), 0);
  EXPECT_LT(step(shape, matrix_of_rank(40, 60, 2), right), 1e-4);
}

TEST(PowerSgd, ShowsThatAGradientHasDiverged) {
  const Shape shape{20, 30, 2};
  std::vector<float> matrix = drawn(shape.elements(), 10);
  matrix[77] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> right(shape.right_elements()), left(shape.left_elements());
  fill_empty_columns(3, shape.columns, right);
  left_factor(shape, matrix, right, left);
  orthogonalize(shape.rows, left);
  right_factor(shape, matrix, left, right);
  reconstruct(shape, left, right, matrix);
  EXPECT_TRUE(std::ranges::all_of(matrix, [](float value) { return std::isnan(value); }));
}

}  // namespace
}  // namespace syncopate::power_sgd

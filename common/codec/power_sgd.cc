#include "common/codec/power_sgd.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/os/target_clones.h"
#include "common/random.h"

namespace syncopate::power_sgd {
namespace {

// A column that keeps less of its length than this is what rounding has left of a dependent one.
constexpr float kIndependent = 1e-5f;

// In 16 sums side by side, which a vector holds: the order does not depend on the processor.
float dot(const float* a, const float* b, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (std::size_t i = whole; i < count; ++i) sums[i - whole] += a[i] * b[i];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

float length(std::span<const float> column) { return std::sqrt(dot(column.data(), column.data(), column.size())); }

// sum += factor · column
void add_multiple(float factor, const float* __restrict column, std::size_t count, float* __restrict sum) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += factor * column[i];
}

std::span<float> column_of(std::span<float> factor, std::size_t height, std::size_t column) {
  return factor.subspan(column * height, height);
}

}  // namespace

std::optional<Shape> shape_of(std::span<const std::int64_t> dimensions, int rank) {
  if (dimensions.size() < 2) return std::nullopt;
  Shape shape{.rows = static_cast<std::size_t>(dimensions[0]), .columns = 1};
  for (const std::int64_t size : dimensions.subspan(1)) shape.columns *= static_cast<std::size_t>(size);
  shape.rank = std::min({static_cast<std::size_t>(rank), shape.rows, shape.columns});
  if (shape.left_elements() + shape.right_elements() >= shape.elements()) return std::nullopt;
  return shape;
}

void fill_empty_columns(std::uint64_t key, std::size_t columns, std::span<float> right) {
  for (std::size_t k = 0; k < right.size() / columns; ++k) {
    const std::span<float> column = column_of(right, columns, k);
    if (std::ranges::any_of(column, [](float value) { return value != 0; })) continue;
    Random random(key, k);
    std::ranges::generate(column, [&] { return static_cast<float>(random.normal()); });
  }
}

SYNCOPATE_CLONES void left_factor(const Shape& shape, std::span<const float> matrix, std::span<const float> right,
                                  std::span<float> left) {
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t k = 0; k < shape.rank; ++k) {
      left[k * shape.rows + row] =
          dot(matrix.data() + row * shape.columns, right.data() + k * shape.columns, shape.columns);
    }
  }
}

SYNCOPATE_CLONES void orthogonalize(std::size_t rows, std::span<float> left) {
  for (std::size_t k = 0; k < left.size() / rows; ++k) {
    const std::span<float> column = column_of(left, rows, k);
    const float before = length(column);
    for (std::size_t j = 0; j < k; ++j) {
      const std::span<float> other = column_of(left, rows, j);
      add_multiple(-dot(other.data(), column.data(), rows), other.data(), rows, column.data());
    }
    const float after = length(column);
    const float scale = after <= kIndependent * before ? 0.0f : 1.0f / after;
    for (float& value : column) value *= scale;
  }
}

SYNCOPATE_CLONES void right_factor(const Shape& shape, std::span<const float> matrix, std::span<const float> left,
                                   std::span<float> right) {
  std::ranges::fill(right, 0.0f);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t k = 0; k < shape.rank; ++k) {
      add_multiple(left[k * shape.rows + row], matrix.data() + row * shape.columns, shape.columns,
                   right.data() + k * shape.columns);
    }
  }
}

SYNCOPATE_CLONES void reconstruct(const Shape& shape, std::span<const float> left, std::span<const float> right,
                                  std::span<float> matrix) {
  std::ranges::fill(matrix, 0.0f);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t k = 0; k < shape.rank; ++k) {
      add_multiple(left[k * shape.rows + row], right.data() + k * shape.columns, shape.columns,
                   matrix.data() + row * shape.columns);
    }
  }
}

SYNCOPATE_CLONES void subtract_product(const Shape& shape, std::span<const float> left, std::span<const float> right,
                                       std::span<float> matrix) {
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t k = 0; k < shape.rank; ++k) {
      add_multiple(-left[k * shape.rows + row], right.data() + k * shape.columns, shape.columns,
                   matrix.data() + row * shape.columns);
    }
  }
}

}  // namespace syncopate::power_sgd

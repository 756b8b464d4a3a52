// Random tensors, poisoned outputs and comparisons for the tests of the compute side.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "common/random.h"

namespace syncopate::worker {

using Tensor = std::vector<float>;

inline Tensor random_tensor(int count, Random& random) {
  Tensor values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

inline std::vector<int> random_labels(int count, int classes, Random& random) {
  std::vector<int> labels(static_cast<std::size_t>(count));
  for (int& label : labels) label = static_cast<int>(random.below(static_cast<std::uint64_t>(classes)));
  return labels;
}

// An output nobody has written to yet: whoever reads it, or leaves a part of it out, is found out.
inline Tensor poisoned(int count) {
  return Tensor(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

// Every element within `tolerance` of the largest expected magnitude (and of 1), and `own` of its own.
inline void expect_close(std::span<const float> actual, std::span<const float> expected, double tolerance,
                         const char* what, double own = 0) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double scale = 1;
  for (float value : expected) scale = std::max(scale, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * scale + own * std::abs(expected[i])) << what << ", element " << i;
  }
}

}  // namespace syncopate::worker

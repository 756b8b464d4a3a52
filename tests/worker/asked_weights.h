// Models that read no weights but those that they have asked for.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "worker/model.h"

namespace syncopate::worker {

// Expects both passes to read the part of `weights` alone that they asked for last: the rest of the arena is NaN then.
// Expects forward to ask for all tensors.
inline void expect_reads_what_it_asks_for(Model& model, ConstFloats weights, const BatchView& batch) {
  const auto pass = [&](ConstFloats arena, std::vector<float>& gradients) {
    model.forward(arena, batch);
    const double loss = model.loss().loss;
    model.backward(arena, gradients, [](std::size_t) {});
    return loss;
  };
  std::vector<float> expected(weights.size()), actual(weights.size());
  const double loss = pass(weights, expected);

  std::vector<float> arena(weights.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<bool> asked(weights.size());
  model.before_reading([&](Range range) {
    std::ranges::fill(arena, std::numeric_limits<float>::quiet_NaN());
    std::ranges::copy(slice(weights, range), arena.begin() + static_cast<std::ptrdiff_t>(range.begin));
    std::fill(asked.begin() + static_cast<std::ptrdiff_t>(range.begin),
              asked.begin() + static_cast<std::ptrdiff_t>(range.end), true);
  });
  EXPECT_EQ(pass(arena, actual), loss) << model.name();
  model.before_reading(nullptr);
  EXPECT_EQ(actual, expected) << model.name();
  for (const TensorSpec& tensor : model.layout().tensors()) {
    for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) {
      ASSERT_TRUE(asked[i]) << model.name() << ", " << tensor.name;
    }
  }
}

}  // namespace syncopate::worker

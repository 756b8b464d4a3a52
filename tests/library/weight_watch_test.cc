#include "library/weight_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace syncopate::library {
namespace {

TEST(WeightWatch, NoticesAWriteToAnyElementInOneOfItsTurns) {
  for (const std::size_t size : {1, 1000, 5000}) {
    std::vector<float> weights(size, std::numeric_limits<float>::quiet_NaN());
    WeightWatch watch(weights);
    std::vector<bool> noticed(size);
    for (std::size_t turn = 0; turn < size / 1024 + 1; ++turn, watch.remember()) {
      EXPECT_EQ(watch.written(), std::nullopt) << "NaN is what it was";
      for (std::size_t i = 0; i < size; ++i) {
        const float was = std::exchange(weights[i], 1.0f);
        if (watch.written() == i) noticed[i] = true;
        weights[i] = was;
      }
    }
    EXPECT_EQ(std::ranges::count(noticed, true), static_cast<std::ptrdiff_t>(size));
  }
}

TEST(WeightWatch, TakesWhatHasComeForWhatItIs) {
  std::vector<float> weights(10, 1.0f);
  WeightWatch watch(weights);
  weights[3] = 2;
  EXPECT_EQ(watch.written(), 3u);
  watch.remember();
  EXPECT_EQ(watch.written(), std::nullopt);
}

}  // namespace
}  // namespace syncopate::library

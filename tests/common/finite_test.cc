#include "common/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace syncopate {
namespace {

using Limits = std::numeric_limits<float>;

TEST(Finite, IsWhatIsNeitherNanNorInfiniteWhereverItStands) {
  for (const std::size_t size : {1u, 7u, 16u, 1000u}) {
    std::vector<float> values(size, -Limits::max());
    values.front() = Limits::denorm_min();
    EXPECT_TRUE(all_finite(values));
    EXPECT_FALSE(first_not_finite(values).has_value());
    for (const float bad : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
      for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
        std::vector<float> spoilt = values;
        spoilt[place] = bad;
        EXPECT_FALSE(all_finite(spoilt));
        EXPECT_EQ(first_not_finite(spoilt), place);
      }
    }
  }
  EXPECT_TRUE(all_finite({}));
}

TEST(Finite, NamesWhatIsNot) {
  EXPECT_EQ(name_of_not_finite(Limits::quiet_NaN()), "nan");
  EXPECT_EQ(name_of_not_finite(Limits::infinity()), "inf");
  EXPECT_EQ(name_of_not_finite(-Limits::infinity()), "-inf");
}

}  // namespace
}  // namespace syncopate

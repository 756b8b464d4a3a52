#include "common/os/flush_denormals.h"

#include <gtest/gtest.h>

#include <limits>

namespace syncopate {
namespace {

// At run time, not by the compiler.
float half_of(float value) {
  asm volatile("" : "+x"(value));
  return value * 0.5f;
}

TEST(FlushDenormals, HoldsWhileItLivesAndNoLonger) {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  EXPECT_GT(half_of(kSmallest), 0.0f);
  {
    const FlushDenormals flush;
    EXPECT_EQ(half_of(kSmallest), 0.0f);
  }
  EXPECT_GT(half_of(kSmallest), 0.0f);
}

}  // namespace
}  // namespace syncopate

#include "common/os/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace syncopate {
namespace {

TEST(AnAlignedBuffer, IsZeroedAndBeginsOnACacheLineOrAPage) {
  const AlignedBuffer small(3), large(5000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % 4096, 0u);
  for (const float value : large.span()) ASSERT_EQ(value, 0);
}

TEST(SharedZeros, AreAllBuffersOfTheirSizeWhileTheyLive) {
  {
    const SharedZeros zeros(5000);
    const AlignedBuffer first(5000), second(5000), other(4999);
    EXPECT_EQ(first.data(), second.data());
    EXPECT_NE(first.data(), other.data());
    EXPECT_TRUE(SharedZeros::holds(first.data() + 4999));
    EXPECT_FALSE(SharedZeros::holds(first.data() + 5000));
    EXPECT_FALSE(SharedZeros::holds(other.data()));
  }
  const AlignedBuffer first(5000), second(5000);
  EXPECT_NE(first.data(), second.data());
  EXPECT_FALSE(SharedZeros::holds(first.data()));
}

}  // namespace
}  // namespace syncopate

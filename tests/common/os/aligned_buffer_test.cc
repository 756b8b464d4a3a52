#include "common/os/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "common/os/process_memory.h"
#include "tests/support/slowness.h"

namespace syncopate {
namespace {

TEST(AnAlignedBuffer, IsZeroedAndBeginsOnACacheLineOrAPage) {
  const AlignedBuffer small(3), large(70000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % 4096, 0u);
  for (const float value : large.span()) ASSERT_EQ(value, 0);
}

TEST(AnAlignedBuffer, TakesNoMemoryWhereNobodyWritesIfItIsLarge) {
  if (testing_support::kSanitized) GTEST_SKIP() << "a sanitizer's memory is counted, too";
  constexpr std::size_t kElements = std::size_t{64} << 20;
  const std::int64_t before = peak_memory_bytes();
  AlignedBuffer large(kElements);
  large.data()[kElements - 1] = 1;
  EXPECT_EQ(large.data()[0], 0);
  EXPECT_LT(peak_memory_bytes() - before, std::int64_t{kElements});
}

TEST(SharedZeros, AreNoneOfASizeThatOtherThingsHaveToo) {
  const SharedZeros zeros(48);
  AlignedBuffer first(48), second(48);
  first.data()[0] = 1;
  EXPECT_EQ(second.data()[0], 0);
  EXPECT_FALSE(SharedZeros::holds(first.data()));
}

TEST(SharedZeros, AreAllBuffersOfTheirSizeWhileTheyLive) {
  {
    const SharedZeros zeros(70000);
    const AlignedBuffer first(70000), second(70000), other(69999);
    EXPECT_EQ(first.data(), second.data());
    EXPECT_NE(first.data(), other.data());
    EXPECT_TRUE(SharedZeros::holds(first.data() + 69999));
    EXPECT_FALSE(SharedZeros::holds(first.data() + 70000));
    EXPECT_FALSE(SharedZeros::holds(other.data()));
  }
  const AlignedBuffer first(70000), second(70000);
  EXPECT_NE(first.data(), second.data());
  EXPECT_FALSE(SharedZeros::holds(first.data()));
}

}  // namespace
}  // namespace syncopate

#include "prediction/roofline.h"

#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

// 100 FLOPs and 10 bytes a second.
constexpr PeakRates kPeak{.flops_per_second = 100, .bytes_per_second = 10};

const std::vector<DeviceOperation> kOperations = {
    {.name = "product", .flops = 400, .bytes = 20},           // 4 s of computing, 2 s of bytes
    {.name = "sum", .flops = 0, .bytes = 30, .launches = 2},  // 3 s of bytes
    {.name = "thin product", .flops = 100, .bytes = 50},      // 1 s of computing, 5 s of bytes
    {.name = "sum", .flops = 0, .bytes = 10},                 // 1 s
    {.name = "balanced", .flops = 100, .bytes = 10},          // 1 s of each
};

TEST(Roofline, TakesTheLongerOfComputingAndBytesForEachOperation) {
  EXPECT_DOUBLE_EQ(least_seconds(kOperations[0], kPeak), 4);
  EXPECT_TRUE(is_compute_bound(kOperations[0], kPeak));
  EXPECT_DOUBLE_EQ(least_seconds(kOperations[2], kPeak), 5);
  EXPECT_FALSE(is_compute_bound(kOperations[2], kPeak));
  EXPECT_DOUBLE_EQ(least_seconds(kOperations[4], kPeak), 1);
}

TEST(Roofline, AddsOperationsUp) {
  const LeastTime sum = least_time(kOperations, kPeak);
  EXPECT_DOUBLE_EQ(sum.seconds, 14);
  EXPECT_DOUBLE_EQ(sum.compute_seconds, 4);
  EXPECT_DOUBLE_EQ(sum.memory_seconds, 10);
  EXPECT_DOUBLE_EQ(sum.flops, 600);
  EXPECT_DOUBLE_EQ(sum.bytes, 120);
  EXPECT_EQ(sum.operations, 5);
  EXPECT_EQ(sum.launches, 6);
  LeastTime twice = sum;
  twice += sum;
  EXPECT_DOUBLE_EQ(twice.seconds, 28);
  EXPECT_EQ(twice.launches, 12);
}

TEST(Roofline, PutsTheLargestFirstAndLikeOnesTogether) {
  const std::vector<LikeOperations> most = largest(kOperations, kPeak, 3);
  ASSERT_EQ(most.size(), 3u);
  EXPECT_EQ(most[0].name, "thin product");
  EXPECT_FALSE(most[0].is_compute_bound);
  EXPECT_EQ(most[1].name, "product") << "before sums, which take as long, since it comes first";
  EXPECT_TRUE(most[1].is_compute_bound);
  EXPECT_EQ(most[2].name, "sum");
  EXPECT_EQ(most[2].count, 2);
  EXPECT_DOUBLE_EQ(most[2].seconds, 4);
  EXPECT_EQ(largest(kOperations, kPeak, 10).size(), 4u);
}

}  // namespace
}  // namespace syncopate::prediction

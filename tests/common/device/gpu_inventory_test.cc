#include "common/device/gpu_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(GpuInventory, FindsGpusOrSaysWhyNot) {
  const Result<std::vector<Gpu>> gpus = find_gpus();
  if (!gpus.ok()) {
    EXPECT_EQ(gpus.status().code(), Code::kNotFound);
    EXPECT_THAT(gpus.status().message(), AnyOf(HasSubstr("libcuda.so.1"), HasSubstr("finds no GPU (cu")));
    return;
  }
  ASSERT_FALSE(gpus->empty());
  for (const Gpu& gpu : *gpus) {
    EXPECT_NE(gpu.name, "");
    EXPECT_GT(gpu.memory_bytes, std::size_t{1} << 28);
    EXPECT_GE(gpu.major, 3);
    EXPECT_GE(gpu.minor, 0);
  }
}

TEST(GpuInventory, DescribesAGpuByNameNumberAndMemory) {
  EXPECT_EQ(describe({.name = "NVIDIA H200", .memory_bytes = std::size_t{150'754'820'096}}, 3),
            "NVIDIA H200 (GPU 3, 140 GiB)");
  EXPECT_EQ(describe({.name = "a small GPU", .memory_bytes = std::size_t{100} << 20}, 0),
            "a small GPU (GPU 0, 100 MiB)");
}

TEST(GpuInventory, SaysTheSameWhenAskedAgain) {
  const Result<std::vector<Gpu>> first = find_gpus(), second = find_gpus();
  ASSERT_EQ(first.ok(), second.ok());
  EXPECT_EQ(first.status().message(), second.status().message());
  if (first.ok()) {
    EXPECT_EQ(first->size(), second->size());
  }
}

}  // namespace
}  // namespace syncopate

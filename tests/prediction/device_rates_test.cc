#include "prediction/device_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "prediction/device_steps.h"

namespace syncopate::prediction {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DeviceRates, HaveASourceAndFiguresThatCanBe) {
  std::set<std::string> names;
  for (const DeviceRates& device : known_devices()) {
    SCOPED_TRACE(device.name);
    EXPECT_TRUE(names.insert(device.name).second) << "stands twice";
    EXPECT_FALSE(device.title.empty());
    EXPECT_FALSE(device.reported.empty());
    EXPECT_THAT(device.source, HasSubstr("NVIDIA"));
    EXPECT_GT(device.bytes_per_second, 1e11);
    EXPECT_LT(device.bytes_per_second, 1e13);
    EXPECT_GT(device.memory_bytes, 1e9);
    ASSERT_TRUE(device.flops_in("fp32"));
    // A lower precision is no slower than a higher one.
    double slowest = *device.flops_in("fp32");
    for (const char* const precision : {"tf32", "bf16"}) {
      if (const std::optional<double> rate = device.flops_in(precision)) {
        EXPECT_GE(*rate, slowest) << precision;
        slowest = *rate;
      }
    }
    EXPECT_GE(device.flops_in("fp16").value_or(0), slowest);
  }
  for (const char* const name : {"h100", "h200", "a100", "v100", "t4", "rtx4060-laptop"}) {
    EXPECT_NE(device_named(name), nullptr) << name;
  }
  EXPECT_EQ(device_named("h1000"), nullptr);
}

TEST(DeviceRates, AreThoseOfTheDataSheets) {
  const DeviceRates& a100 = *device_named("a100");
  EXPECT_DOUBLE_EQ(*a100.flops_in("fp32"), 19.5e12);
  EXPECT_DOUBLE_EQ(*a100.flops_in("tf32"), 156e12);
  EXPECT_DOUBLE_EQ(*a100.flops_in("bf16"), 312e12);
  EXPECT_DOUBLE_EQ(a100.bytes_per_second, 2039e9);
  EXPECT_DOUBLE_EQ(a100.memory_bytes, 80e9);
  EXPECT_DOUBLE_EQ(*device_named("v100")->flops_in("fp16"), 125e12);
  // 3072 cores that each multiply and add at 2.37 GHz.
  EXPECT_NEAR(*device_named("rtx4060-laptop")->flops_in("fp32"), 2 * 3072 * 2.37e9, 0.05e12);
}

TEST(DeviceRates, SayWhichPrecisionsADeviceHas) {
  EXPECT_DOUBLE_EQ(*rate_of(*device_named("t4"), "fp16"), 65e12);
  EXPECT_EQ(rate_of(*device_named("t4"), "bf16").status().message(), "t4 has no rate of bf16; there are fp32 and fp16");
  EXPECT_EQ(rate_of(*device_named("t4"), "fp8").status().message(), "t4 has no rate of fp8; there are fp32 and fp16");
  DeviceRates plain{.name = "mine"};
  plain.flops[0] = 1e12;
  EXPECT_EQ(rate_of(plain, "tf32").status().message(), "mine has no rate of tf32; there is fp32");
}

TEST(DeviceRates, AreFoundByWhatADriverReports) {
  ASSERT_NE(device_reported_as("NVIDIA H100 80GB HBM3 (GPU 0, 79 GiB)"), nullptr);
  EXPECT_EQ(device_reported_as("NVIDIA H100 80GB HBM3 (GPU 0, 79 GiB)")->name, "h100");
  EXPECT_EQ(device_reported_as("NVIDIA A100-SXM4-40GB (GPU 1, 39 GiB)")->name, "a100-40gb");
  EXPECT_EQ(device_reported_as("Tesla V100-SXM2-32GB (GPU 0, 32 GiB)")->name, "v100-32gb");
  EXPECT_EQ(device_reported_as("NVIDIA H100 PCIe (GPU 0, 79 GiB)"), nullptr) << "its memory is slower";
  EXPECT_EQ(device_reported_as("Software GPU (GPU 0, 4 GiB)"), nullptr);
}

// A step that somebody measured took no less time than its products at the peak rate do.
TEST(DeviceRates, AreNoLowerThanWhatWasMeasured) {
  const Result<TypicalStep> step = typical_step("h100:tf32", "resnet50", 32);
  ASSERT_TRUE(step.ok());
  constexpr double kStepOfASample = 3 * 8.2e9;  // FLOPs
  EXPECT_GT(step->seconds, 32 * kStepOfASample / *device_named("h100")->flops_in("tf32"));
}

}  // namespace
}  // namespace syncopate::prediction

#include "experiments/lab/why/device_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// An mlp's run on a GPU that took 2 ms forward, 3 ms backward and 1 ms for the update.
ExplainedRun run_on_gpu() {
  ExplainedRun run;
  run.device = "NVIDIA H100 80GB HBM3 (GPU 0, 79 GiB)";
  run.updates_on_device = true;
  run.pace.on_device = true;
  run.waterfall.device = {.forward_ms = 2, .backward_ms = 3, .optimizer_ms = 1, .launch_ms = 0.5};
  return run;
}

ResolvedRun mlp_on_gpu() {
  ResolvedRun config;
  config.model = "mlp";
  config.device = DeviceKind::kCuda;
  return config;
}

TEST(DeviceText, IsOfRunsOnGpusAlone) { EXPECT_THAT(device_text(ExplainedRun()), IsEmpty()); }

TEST(DeviceText, HasPhasesBesideTheirLeastTimes) {
  ExplainedRun run = run_on_gpu();
  run.least = least_on(*prediction::device_reported_as(run.device), mlp_on_gpu());
  ASSERT_TRUE(run.least.has_value());
  run.least->forward.seconds = run.least->forward.memory_seconds = 1e-3;
  run.least->forward.compute_seconds = 0;
  EXPECT_THAT(device_text(run),
              AllOf(HasSubstr("NVIDIA H100 80GB HBM3 (GPU 0, 79 GiB), the mean of all workers' steps\n"),
                    HasSubstr("forward            2.00      1.00          0.000          1.00     50 %\n"),
                    HasSubstr("\nbackward "), HasSubstr("\nupdate "), HasSubstr("peak rates of H100 SXM 80 GB in fp32"),
                    HasSubstr("NVIDIA, H100"), HasSubstr("the host took 0.500 ms to give forward and backward")));
}

TEST(DeviceText, SaysWhereThereIsNoDataSheet) {
  ExplainedRun run = run_on_gpu();
  run.updates_on_device = false;
  EXPECT_THAT(device_text(run), AllOf(HasSubstr("forward            2.00\n"), HasSubstr("compared with no data sheet"),
                                      Not(HasSubstr("at least")), Not(HasSubstr("update"))));
}

TEST(DeviceText, SaysWhereAGpuMayHaveWaitedForEachCall) {
  ExplainedRun run = run_on_gpu();
  EXPECT_FALSE(waits_for_launches(run));
  run.waterfall.device.launch_ms = 4.9;
  EXPECT_TRUE(waits_for_launches(run));
  EXPECT_THAT(device_text(run), AllOf(HasSubstr("may have waited for its host: larger batches give"),
                                      Not(HasSubstr("--cuda-graphs=on"))));
  run.may_capture_steps = true;
  EXPECT_THAT(device_text(run), HasSubstr("--cuda-graphs=on gives it a step in one piece, and larger batches"));
  run.pace.captures_steps = true;
  EXPECT_FALSE(waits_for_launches(run)) << "a graph is given before the GPU begins with it";
}

TEST(DeviceLeast, IsOfTheRunsPrecisionAndModel) {
  ResolvedRun config = mlp_on_gpu();
  const std::optional<DeviceLeast> least = least_on(*prediction::device_named("h100"), config);
  ASSERT_TRUE(least.has_value());
  EXPECT_GT(least->forward.seconds, 0);
  EXPECT_GT(least->backward.seconds, least->forward.seconds);
  EXPECT_GT(least->update.bytes, 0);
  config.precision = worker::Precision::kTf32;
  EXPECT_FALSE(least_on(*prediction::device_named("v100"), config)) << "it has no tf32";
  config.model = "none";
  EXPECT_FALSE(least_on(*prediction::device_named("h100"), config));
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/plan/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

const Machine kWithoutGpu{.gpu_program = true, .gpus = {}, .why_no_gpu = "no NVIDIA driver on this machine"};
const Machine kWithOne{.gpu_program = true, .gpus = {{.name = "NVIDIA H200"}}};
const Machine kWithTwo{.gpu_program = true, .gpus = {{.name = "NVIDIA H200"}, {.name = "NVIDIA H200"}}};
const Machine kNotBuilt{.gpu_program = false, .gpus = {{.name = "NVIDIA H200"}}};

RunConfig config_of(Mode mode, DeviceKind device, int workers = 0) {
  RunConfig config;
  config.mode = mode;
  config.device = device;
  config.workers = workers;
  return config;
}

DeviceKind device_of(const RunConfig& config, const Machine& machine) {
  const Result<RunConfig> placed = place(config, machine);
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  return placed.ok() ? placed->device : DeviceKind::kAuto;
}

std::string refusal(const RunConfig& config, const Machine& machine) {
  const Result<RunConfig> placed = place(config, machine);
  EXPECT_EQ(placed.status().code(), Code::kInvalidArgument);
  return placed.status().message();
}

TEST(Placement, TakesGpusWhereThereIsOneForEachWorker) {
  const RunConfig local = config_of(Mode::kLocal, DeviceKind::kAuto);
  EXPECT_EQ(device_of(local, kWithOne), DeviceKind::kCuda);
  EXPECT_EQ(device_of(local, kWithoutGpu), DeviceKind::kCpu);
  EXPECT_EQ(device_of(local, kNotBuilt), DeviceKind::kCpu);
  const RunConfig two = config_of(Mode::kAllreduce, DeviceKind::kAuto);
  EXPECT_EQ(device_of(two, kWithOne), DeviceKind::kCpu);
  EXPECT_EQ(device_of(two, kWithTwo), DeviceKind::kCuda);
}

TEST(Placement, TakesTheCpuWhereSomethingOfTheCpuIsAskedFor) {
  RunConfig reference = config_of(Mode::kLocal, DeviceKind::kAuto);
  reference.backend = BackendKind::kReference;
  EXPECT_EQ(device_of(reference, kWithOne), DeviceKind::kCpu);
  RunConfig ring = config_of(Mode::kAllreduce, DeviceKind::kAuto);
  ring.collective = CollectiveKind::kRing;
  EXPECT_EQ(device_of(ring, kWithTwo), DeviceKind::kCpu);
}

TEST(Placement, LeavesTheCpuToThoseWhoAskForIt) {
  EXPECT_EQ(device_of(config_of(Mode::kLocal, DeviceKind::kCpu), kWithOne), DeviceKind::kCpu);
}

TEST(Placement, SaysWhatWasFoundWhereAGpuIsAskedFor) {
  EXPECT_EQ(refusal(config_of(Mode::kLocal, DeviceKind::kCuda), kWithoutGpu),
            "--device=cuda: no NVIDIA driver on this machine");
  EXPECT_THAT(refusal(config_of(Mode::kLocal, DeviceKind::kCuda), kNotBuilt), HasSubstr("is not built"));
  RunConfig nccl = config_of(Mode::kAllreduce, DeviceKind::kAuto);
  nccl.collective = CollectiveKind::kNccl;
  EXPECT_EQ(refusal(nccl, kWithoutGpu), "--collective=nccl: --device=cuda: no NVIDIA driver on this machine");
}

TEST(Placement, PutsSeveralWorkersOnOneGpuOnlyWhereThatIsAskedFor) {
  RunConfig config = config_of(Mode::kPs, DeviceKind::kCuda, 3);
  EXPECT_EQ(refusal(config, kWithTwo),
            "--workers=3: this machine has 2 GPUs (NVIDIA H200); use --workers=2 or --share-gpu");
  EXPECT_THAT(refusal(config, kWithOne), HasSubstr("has 1 GPU (NVIDIA H200); use --workers=1"));
  config.share_gpu = true;
  EXPECT_EQ(device_of(config, kWithOne), DeviceKind::kCuda);
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/cluster/plan/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

const Machine kWithoutGpu{.gpu_program = true, .gpus = {}, .why_no_gpu = "no NVIDIA driver on this machine"};
const Machine kWithOne{.gpu_program = true, .gpus = {{.name = "NVIDIA H200", .major = 9}}};
const Machine kWithTwo{.gpu_program = true,
                       .gpus = {{.name = "NVIDIA H200", .major = 9}, {.name = "NVIDIA H200", .major = 9}}};
const Machine kNotBuilt{.gpu_program = false, .gpus = {{.name = "NVIDIA H200", .major = 9}}};

RunRequest config_of(Mode mode, std::optional<DeviceKind> device, std::optional<int> workers = {}) {
  RunRequest config;
  config.mode = mode;
  config.device = device;
  config.workers = workers;
  return config;
}

std::optional<DeviceKind> device_of(const RunRequest& config, const Machine& machine) {
  const Result<Placement> placed = place(config, machine);
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  return placed.ok() ? std::optional(placed->device) : std::nullopt;
}

std::string refusal(const RunRequest& config, const Machine& machine) {
  const Result<Placement> placed = place(config, machine);
  EXPECT_EQ(placed.status().code(), Code::kInvalidArgument);
  return placed.status().message();
}

TEST(Placement, TakesGpusWhereThereIsOneForEachWorker) {
  const RunRequest local = config_of(Mode::kLocal, std::nullopt);
  EXPECT_EQ(device_of(local, kWithOne), DeviceKind::kCuda);
  EXPECT_EQ(device_of(local, kWithoutGpu), DeviceKind::kCpu);
  EXPECT_EQ(device_of(local, kNotBuilt), DeviceKind::kCpu);
  const RunRequest two = config_of(Mode::kAllreduce, std::nullopt);
  EXPECT_EQ(device_of(two, kWithOne), DeviceKind::kCpu);
  EXPECT_EQ(device_of(two, kWithTwo), DeviceKind::kCuda);
}

TEST(Placement, TakesTheCpuWhereSomethingOfTheCpuIsAskedFor) {
  RunRequest reference = config_of(Mode::kLocal, std::nullopt);
  reference.backend = BackendKind::kReference;
  EXPECT_EQ(device_of(reference, kWithOne), DeviceKind::kCpu);
  RunRequest ring = config_of(Mode::kAllreduce, std::nullopt);
  ring.collective = CollectiveKind::kRing;
  EXPECT_EQ(device_of(ring, kWithTwo), DeviceKind::kCpu);
  RunRequest overlap = config_of(Mode::kPs, std::nullopt);
  EXPECT_EQ(device_of(overlap, kWithTwo), DeviceKind::kCuda);
  overlap.overlap_forward = true;
  EXPECT_EQ(device_of(overlap, kWithTwo), DeviceKind::kCpu);
}

TEST(Placement, NamesTheGpuOfTheFirstWorker) {
  EXPECT_EQ(place(config_of(Mode::kLocal, std::nullopt), kWithOne)->gpu, describe(kWithOne.gpus.front(), 0));
  EXPECT_EQ(place(config_of(Mode::kAllreduce, DeviceKind::kCuda), kWithTwo)->gpu, describe(kWithTwo.gpus.front(), 0));
  EXPECT_EQ(place(config_of(Mode::kLocal, DeviceKind::kCpu), kWithOne)->gpu, "");
}

TEST(Placement, LeavesTheCpuToThoseWhoAskForIt) {
  EXPECT_EQ(device_of(config_of(Mode::kLocal, DeviceKind::kCpu), kWithOne), DeviceKind::kCpu);
}

TEST(Placement, SaysWhatWasFoundWhereAGpuIsAskedFor) {
  EXPECT_EQ(refusal(config_of(Mode::kLocal, DeviceKind::kCuda), kWithoutGpu),
            "--device=cuda: no NVIDIA driver on this machine; --device=cpu needs none");
  EXPECT_THAT(refusal(config_of(Mode::kLocal, DeviceKind::kCuda), kNotBuilt), HasSubstr("is not built"));
  RunRequest nccl = config_of(Mode::kAllreduce, std::nullopt);
  nccl.collective = CollectiveKind::kNccl;
  EXPECT_EQ(refusal(nccl, kWithoutGpu),
            "--collective=nccl: --device=cuda: no NVIDIA driver on this machine; --device=cpu needs none");
}

TEST(Placement, PutsSeveralWorkersOnOneGpuOnlyWhereThatIsAskedFor) {
  RunRequest config = config_of(Mode::kPs, DeviceKind::kCuda, 3);
  EXPECT_EQ(refusal(config, kWithTwo),
            "--workers=3: this machine has 2 GPUs (NVIDIA H200); use --workers=2 or --share-gpu");
  EXPECT_THAT(refusal(config, kWithOne), HasSubstr("has 1 GPU (NVIDIA H200); use --workers=1"));
  config.share_gpu = true;
  EXPECT_EQ(device_of(config, kWithOne), DeviceKind::kCuda);
}

TEST(Placement, SharesNothingWhereEveryWorkerHasAGpuOfItsOwn) {
  RunRequest config = config_of(Mode::kPs, DeviceKind::kCuda, 2);
  config.share_gpu = true;
  EXPECT_FALSE(place(config, kWithTwo)->share_gpu);
  EXPECT_TRUE(place(config, kWithOne)->share_gpu);
}

TEST(Placement, CountsTheGpusOfEachHost) {
  RunRequest config = config_of(Mode::kAllreduce, DeviceKind::kCuda, 3);
  config.hosts = {{"node1", 1}, {"node2", 2}};
  Machines machines(kWithoutGpu);
  machines.of_hosts = {kWithOne, kWithTwo};
  EXPECT_EQ(place(config, machines)->device, DeviceKind::kCuda);
  machines.of_hosts = {kWithTwo, kWithOne};
  EXPECT_EQ(place(config, machines).status().message(),
            "--hosts=node1:1,node2:2: host node2 has 1 GPU (NVIDIA H200) for 2 workers; give it 1 slot, or use "
            "--share-gpu");
  config.workers = 2;  // one on each
  EXPECT_EQ(place(config, machines)->device, DeviceKind::kCuda);
  config.share_gpu = true;
  EXPECT_FALSE(place(config, machines)->share_gpu);
}

TEST(Placement, NamesTheHostThatHasNoGpu) {
  RunRequest config = config_of(Mode::kAllreduce, DeviceKind::kCuda, 2);
  config.hosts = {{"node1", 1}, {"node2", 1}, {"node3", 1}};
  Machines machines(kWithTwo);
  machines.of_hosts = {kWithOne, kWithoutGpu, kWithoutGpu};
  EXPECT_EQ(place(config, machines).status().message(),
            "--device=cuda: host node2: no NVIDIA driver on this machine; --device=cpu needs none");
  machines.of_hosts[1] = kNotBuilt;
  EXPECT_THAT(place(config, machines).status().message(), HasSubstr("host node2: the program for GPUs is not built"));
  config.device.reset();
  EXPECT_EQ(place(config, machines)->device, DeviceKind::kCpu);
  machines.of_hosts[1] = kWithOne;
  EXPECT_EQ(place(config, machines)->device, DeviceKind::kCuda);  // nobody computes on node3
}

TEST(Placement, RefusesGpusThatNothingIsCompiledFor) {
  const Machine old{.gpu_program = true, .gpus = {{.name = "Tesla V100", .major = 7}}};
  EXPECT_EQ(refusal(config_of(Mode::kLocal, DeviceKind::kCuda), old),
            "--device=cuda: Tesla V100 has compute capability 7.0; 7.5 or more is needed");
  EXPECT_EQ(device_of(config_of(Mode::kLocal, std::nullopt), old), DeviceKind::kCpu);
}

TEST(Placement, RefusesNcclBesideABackendOfTheProcessor) {
  RunRequest config = config_of(Mode::kAllreduce, std::nullopt);
  config.collective = CollectiveKind::kNccl;
  config.backend = BackendKind::kReference;
  EXPECT_THAT(refusal(config, kWithTwo), HasSubstr("leave one out"));
}

TEST(Placement, SettlesARunOnTheMachinesThatAreThere) {
  RunRequest request = config_of(Mode::kAllreduce, std::nullopt);
  EXPECT_EQ(resolve_on(kWithTwo, request, "now")->collective, CollectiveKind::kNccl);
  const Result<ResolvedRun> here = resolve_on(kWithoutGpu, request, "now");
  EXPECT_EQ(here->collective, CollectiveKind::kDirect);
  EXPECT_EQ(here->workers, 2);
  EXPECT_EQ(here->listen_address, "");
  EXPECT_EQ(here->output, "results/now-allreduce-direct");
  request.hosts = {{"node1", 1}, {"node2", 2}};
  Machines machines(kWithoutGpu);
  machines.of_hosts = {kWithoutGpu, kWithoutGpu};
  machines.listen_address = "10.0.0.7";
  const Result<ResolvedRun> there = resolve_on(machines, request, "now");
  EXPECT_EQ(there->listen_address, "10.0.0.7");
  EXPECT_EQ(there->workers, 3);
  EXPECT_EQ(there->transport, TransportKind::kSockets);
}

TEST(Placement, HoldsARunAgainstTheRulesOfTheDeviceThatIsThere) {
  RunRequest request = config_of(Mode::kAllreduce, std::nullopt);
  request.elastic = true;
  EXPECT_TRUE(check(request).ok()) << "before any machine is known";
  EXPECT_TRUE(resolve_on(kWithoutGpu, request, "").ok());
  EXPECT_EQ(resolve_on(kWithTwo, request, "").status().message(),
            "--elastic: NCCL's groups cannot lose a rank and go on; use --collective=ring");
}

TEST(Placement, PutsAllRunsOfAComparisonOnOneKindOfDevice) {
  const auto placed = [](const std::string& modes, const Machine& machine) -> Result<DeviceKind> {
    RunRequest base;
    std::vector<ComparedRun> runs = *comparison_runs(base, modes);
    const Result<std::vector<ResolvedRun>> resolved = resolve_together(machine, base, runs, "");
    if (!resolved.ok()) return resolved.status();
    EXPECT_EQ(resolved->size(), runs.size());
    for (const ResolvedRun& run : *resolved) EXPECT_EQ(run.device, base.device);
    return *base.device;
  };
  EXPECT_EQ(*placed("local,allreduce,ps:async", kWithOne), DeviceKind::kCpu);  // two workers
  EXPECT_EQ(*placed("local,allreduce,ps:async", kWithTwo), DeviceKind::kCuda);
  EXPECT_EQ(*placed("allreduce:ring,ps:async", kWithTwo), DeviceKind::kCpu);
  EXPECT_FALSE(placed("local,allreduce:nccl", kWithoutGpu).ok());
  EXPECT_FALSE(placed("allreduce:ring,allreduce:nccl", kWithTwo).ok());
}

}  // namespace
}  // namespace syncopate::experiments

#include "experiments/plan/placement.h"

#include <fmt/format.h>

namespace syncopate::experiments {
namespace {

constexpr int kLeastCapability = 75;  // of those that cmake/Cuda.cmake compiles for

int workers_of(const RunConfig& config) { return resolve(config, "").workers; }

// What keeps these workers from computing on GPUs, if anything.
Status check_gpus(const RunConfig& config, const Machine& machine) {
  if (!machine.gpu_program) {
    return Status(Code::kInvalidArgument,
                  "--device=cuda: the program for GPUs is not built; it needs a CUDA toolkit with cuDNN and NCCL");
  }
  if (machine.gpus.empty()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("--device=cuda: {}; --device=cpu needs none", machine.why_no_gpu));
  }
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.major * 10 + gpu.minor >= kLeastCapability) continue;
    return Status(Code::kInvalidArgument,
                  fmt::format("--device=cuda: {} has compute capability {}.{}; {}.{} or more is needed", gpu.name,
                              gpu.major, gpu.minor, kLeastCapability / 10, kLeastCapability % 10));
  }
  const auto gpus = static_cast<int>(machine.gpus.size());
  if (workers_of(config) <= gpus || config.share_gpu) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("--workers={}: this machine has {} GPU{} ({}); use --workers={} or --share-gpu",
                            workers_of(config), gpus, gpus == 1 ? "" : "s", machine.gpus.front().name, gpus));
}

}  // namespace

Result<RunConfig> place(RunConfig config, const Machine& machine) {
  if (config.device == DeviceKind::kCpu) return config;
  const Status gpus = check_gpus(config, machine);
  if (config.device == DeviceKind::kCuda) {
    if (!gpus.ok()) return gpus;
    config.share_gpu = config.share_gpu && workers_of(config) > static_cast<int>(machine.gpus.size());
    return config;
  }
  // Plain loops, and collectives of the CPU, are asked for by name.
  const bool for_cpu = config.backend == BackendKind::kReference || config.collective == CollectiveKind::kRing ||
                       config.collective == CollectiveKind::kMpi;
  const bool for_gpu = config.mode == Mode::kAllreduce && config.collective == CollectiveKind::kNccl;
  if (for_gpu && for_cpu) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("--collective=nccl: sums on GPUs, but --backend={} computes on the processor; leave one out",
                    name_of(config.backend)));
  }
  if (for_gpu && !gpus.ok()) return gpus.in("--collective=nccl");
  config.device = gpus.ok() && !for_cpu ? DeviceKind::kCuda : DeviceKind::kCpu;
  return config;
}

Status place_together(RunConfig& base, std::vector<ComparedRun>& runs, const Machine& machine) {
  bool on_gpus = true;
  for (const ComparedRun& run : runs) {
    const Result<RunConfig> placed = place(run.config, machine);
    if (!placed.ok()) return placed.status();
    on_gpus = on_gpus && placed->device == DeviceKind::kCuda;
  }
  base.device = on_gpus ? DeviceKind::kCuda : DeviceKind::kCpu;
  for (ComparedRun& run : runs) {
    run.config.device = base.device;
    SYNCOPATE_RETURN_IF_ERROR(validate(run.config));
  }
  return {};
}

}  // namespace syncopate::experiments

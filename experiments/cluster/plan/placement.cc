#include "experiments/cluster/plan/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

constexpr int kLeastCapability = 75;  // the least that cmake/Cuda.cmake compiles for

// A host's part of the run: the number of workers that compute on it.
struct Share {
  std::string host;  // "this machine", "host node7"
  const Machine* machine;
  int workers = 0;
};

std::vector<Share> shares_of(const RunRequest& config, const Machines& machines) {
  const int workers = workers_of(config);
  if (machines.of_hosts.empty() || !is_distributed(config)) return {{"this machine", &machines.here, workers}};
  std::vector<Share> shares;
  const std::vector<HostSlots>& hosts = config.hosts;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    shares.push_back({hosts[i].remote() ? "host " + hosts[i].name : "this machine", &machines.of_hosts[i]});
  }
  for (const std::size_t host : hosts_of_workers(hosts, workers)) ++shares[host].workers;
  return shares;
}

// Fails if something keeps these workers from computing on GPUs.
Status check_gpus(const RunRequest& config, const Share& share) {
  const auto wrong = [&](const std::string& what) {
    const std::string where = share.host == "this machine" ? "" : share.host + ": ";
    return Status::invalid_argument("--device=cuda: " + where + what);
  };
  const Machine& machine = *share.machine;
  if (!machine.gpu_program) {
    return wrong("the program for GPUs is not built; it needs a CUDA toolkit with cuDNN and NCCL");
  }
  if (machine.gpus.empty()) return wrong(fmt::format("{}; --device=cpu needs none", machine.why_no_gpu));
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.major * 10 + gpu.minor >= kLeastCapability) continue;
    return wrong(fmt::format("{} has compute capability {}.{}; {}.{} or more is needed", gpu.name, gpu.major, gpu.minor,
                             kLeastCapability / 10, kLeastCapability % 10));
  }
  const auto gpus = static_cast<int>(machine.gpus.size());
  if (share.workers <= gpus || config.share_gpu) return {};
  const std::string has =
      fmt::format("{} has {} GPU{} ({})", share.host, gpus, gpus == 1 ? "" : "s", machine.gpus.front().name);
  if (!config.hosts.empty() && is_distributed(config)) {
    return Status::invalid_argument(
        fmt::format("--hosts={}: {} for {} workers; give it {} slot{}, or use "
                    "--share-gpu",
                    to_text(config.hosts), has, share.workers, gpus, gpus == 1 ? "" : "s"));
  }
  return Status::invalid_argument(
      fmt::format("--workers={}: {}; use --workers={} or --share-gpu", share.workers, has, gpus));
}

Status check_gpus(const RunRequest& config, const std::vector<Share>& shares) {
  for (const Share& share : shares) {
    if (share.workers > 0) SYNCOPATE_RETURN_IF_ERROR(check_gpus(config, share));
  }
  return {};
}

bool any_gpu_is_shared(const std::vector<Share>& shares) {
  return std::ranges::any_of(
      shares, [](const Share& share) { return share.workers > static_cast<int>(share.machine->gpus.size()); });
}

}  // namespace

Result<Placement> place(const RunRequest& request, const Machines& machines) {
  Placement placement{.device = DeviceKind::kCpu, .share_gpu = request.share_gpu};
  if (spans_hosts(request)) placement.listen_address = request.listen_address.value_or(machines.listen_address);
  // Hosts of namespaces have this machine's GPUs, all of them at once: none is theirs.
  const bool has_no_gpus = request.cluster == ClusterKind::kNamespaces && !request.device;
  if (request.device == DeviceKind::kCpu || has_no_gpus) return placement;
  const std::vector<Share> shares = shares_of(request, machines);
  const Status gpus = check_gpus(request, shares);
  const auto take_gpus = [&placement](const std::vector<Share>& taken) {
    placement.device = DeviceKind::kCuda;
    const auto first = std::ranges::find_if(taken, [](const Share& share) { return share.workers > 0; });
    if (first != taken.end()) placement.gpu = describe(first->machine->gpus.front(), 0);
  };
  if (request.device == DeviceKind::kCuda) {
    if (!gpus.ok()) return gpus;
    take_gpus(shares);
    placement.share_gpu = request.share_gpu && any_gpu_is_shared(shares);
    return placement;
  }
  // The reference backend, collectives of the CPU, and features of workers on the CPU are only chosen by name.
  const bool by_nccl = request.collective && is_nccl(*request.collective);
  const bool has_cpu_collective = request.collective && !by_nccl;
  const bool for_cpu = request.backend == BackendKind::kReference || request.overlap_forward ||
                       is_recommender(request) || has_cpu_collective;
  const bool for_gpu = sums_among_workers(request) && by_nccl;
  if (for_gpu && for_cpu) {
    return Status::invalid_argument(
        fmt::format("--collective={}: sums on GPUs, but --backend={} computes on the processor; leave one out",
                    name_of(*request.collective), name_of(request.backend)));
  }
  if (for_gpu && !gpus.ok()) return gpus.in(fmt::format("--collective={}", name_of(*request.collective)));
  if (gpus.ok() && !for_cpu) take_gpus(shares);
  return placement;
}

Result<ResolvedRun> resolve_on(const Machines& machines, const RunRequest& request, const std::string& stamp) {
  const Result<Placement> placement = place(request, machines);
  return placement.ok() ? resolve(request, *placement, stamp) : Result<ResolvedRun>(placement.status());
}

Result<std::vector<ResolvedRun>> resolve_together(const Machines& machines, RunRequest& base,
                                                  std::vector<ComparedRun>& runs, const std::string& stamp) {
  bool on_gpus = true;
  for (const ComparedRun& run : runs) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Placement placement, place(run.config, machines));
    on_gpus = on_gpus && placement.device == DeviceKind::kCuda;
  }
  base.device = on_gpus ? DeviceKind::kCuda : DeviceKind::kCpu;
  std::vector<ResolvedRun> resolved;
  for (ComparedRun& run : runs) {
    run.config.device = base.device;
    SYNCOPATE_ASSIGN_OR_RETURN(ResolvedRun one, resolve_on(machines, run.config, stamp));
    resolved.push_back(std::move(one));
  }
  return resolved;
}

}  // namespace syncopate::experiments

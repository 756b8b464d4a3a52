#include "experiments/lab/predict/simulated_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/group_limits.h"
#include "experiments/config/profile_choice.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/run/scratch_folder.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;

constexpr int kWarmUp = 1, kMeasured = 2;  // steps; each is like the others

// Returns the servers of ours that do what BytePS's optimum says; other plans as they are.
prediction::ExchangePlan as_servers(const prediction::ExchangePlan& plan, const prediction::Network& network) {
  if (plan.exchange != Exchange::kByteps || network.hosts() == 1) return plan;
  prediction::ExchangePlan servers{
      .exchange = Exchange::kServers, .servers = plan.servers, .aggregated = network.workers_per_host > 1};
  if (plan.servers >= network.hosts()) return servers;
  servers.servers = network.hosts();
  servers.colocated = true;
  servers.spare_servers = plan.servers;
  return servers;
}

bool set_exchange(const prediction::ExchangePlan& plan, const prediction::Network& network, RunRequest& request) {
  const auto allreduce = [&](CollectiveKind kind) {
    request.mode = Mode::kAllreduce;
    request.collective = kind;
    request.bucket_bytes = std::max<std::int64_t>(1, std::llround(plan.bucket_bytes));
    return true;
  };
  switch (plan.exchange) {
    case Exchange::kRing:
      return allreduce(CollectiveKind::kRing);
    case Exchange::kTree:
      return allreduce(CollectiveKind::kBinomialTree);
    case Exchange::kHalvingDoubling:
      return allreduce(CollectiveKind::kHalvingDoubling);
    case Exchange::kHierarchical:
      return allreduce(CollectiveKind::kHierarchical);
    case Exchange::kByteps:
      return false;
    case Exchange::kServers:
      break;
  }
  if (plan.servers > kMostServers || (!plan.colocated && network.workers_per_host > 1)) return false;
  request.mode = Mode::kPs;
  request.consistency = *ps::Consistency::parse("sync");
  request.servers = plan.servers;
  request.colocated = plan.spare_servers > 0;
  request.spare_servers = plan.spare_servers;
  if (plan.aggregated) request.aggregation = Aggregation::kHost;
  if (plan.sharding == prediction::Sharding::kWhole) request.sharding = ps::ShardingPolicy::kWhole;
  return true;
}

}  // namespace

std::optional<RunRequest> run_like(const ScaledJob& job, int workers, const prediction::ExchangePlan& asked,
                                   simulation::NetworkModel network) {
  if (workers < 2 || workers > kMostWorkersBesideAPrediction) return std::nullopt;
  const prediction::Network links = job.network(workers);
  if (workers % links.workers_per_host != 0) return std::nullopt;
  const prediction::ExchangePlan plan = as_servers(asked, links);
  RunRequest request;
  if (!set_exchange(plan, links, request)) return std::nullopt;
  request.cluster = ClusterKind::kSimulated;
  request.network = network;
  request.model = std::string(kProfilePrefix) + job.profile_name;
  request.workers = workers;
  request.batch_size = job.batch_size;
  request.shape = job.link;
  request.compute = ComputeModel{.step = from_seconds(job.step_seconds), .flops_per_second = {}, .profile = {}};
  request.processing = ProcessingModel();
  request.warmup_steps = kWarmUp;
  request.steps = kWarmUp + kMeasured;
  request.train_samples = static_cast<std::int64_t>(workers) * job.batch_size * (kWarmUp + kMeasured);
  if (links.workers_per_host > 1 || plan.colocated) {
    const Result<std::vector<HostSlots>> hosts =
        parse_hosts(fmt::format("{}x{}", links.hosts(), links.workers_per_host));
    if (!hosts.ok()) return std::nullopt;
    request.hosts = *hosts;
    for (int spare = 0; spare < plan.spare_servers; ++spare) {
      request.hosts.push_back({.name = fmt::format("spare{}", spare), .slots = 0});
    }
    request.inside = job.inside;
  }
  return request;
}

Result<JobResult> simulated_run(RunRequest request, const JobRunner& run) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::make());
  request.output = folder.path() + "/run";
  SYNCOPATE_ASSIGN_OR_RETURN(const ResolvedRun config, resolve(request, Placement(), ""));
  JobResult result = run(config);
  if (result.exit == ExitCode::kInterrupted) {
    return Status::cancelled("interrupted; simulated steps are not kept: the same command begins anew");
  }
  if (result.exit != ExitCode::kSuccess || result.reports.empty()) {
    return Status::internal(fmt::format("the step could not be simulated: {}", result.verdict));
  }
  return result;
}

Result<double> simulated_step(RunRequest request, const JobRunner& run) {
  SYNCOPATE_ASSIGN_OR_RETURN(const JobResult result, simulated_run(std::move(request), run));
  return result.reports.front().split_ms.step / 1e3;
}

}  // namespace syncopate::experiments

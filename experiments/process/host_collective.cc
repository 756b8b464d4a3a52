#include "experiments/process/host_collective.h"

#include "allreduce/direct_collective.h"
#include "allreduce/mpi_collective.h"
#include "allreduce/schedule_collective.h"
#include "experiments/process/data_endpoint.h"

namespace syncopate::experiments {
namespace {

// By host, the workers that the plan puts there.
allreduce::RanksByHost ranks_by_host(const RunConfig& config) {
  const std::vector<HostSlots> hosts = hosts_of(config);
  const std::vector<std::size_t> host_of = hosts_of_workers(hosts, config.workers);
  allreduce::RanksByHost ranks(hosts.size());
  for (int rank = 0; rank < config.workers; ++rank) ranks[host_of[static_cast<std::size_t>(rank)]].push_back(rank);
  std::erase_if(ranks, [](const std::vector<int>& of_host) { return of_host.empty(); });
  return ranks;
}

template <typename Made>
Result<HostCollective> without_transport(Result<std::unique_ptr<Made>> collective) {
  if (!collective.ok()) return collective.status();
  return HostCollective{nullptr, std::move(*collective)};
}

}  // namespace

Result<HostCollective> connect_host_collective(const RoleContext& context, const Clock& clock) {
  const RunConfig& config = context.config;
  if (config.collective == CollectiveKind::kMpi) {
    return without_transport(allreduce::make_mpi_collective(context.rank, config.workers));
  }
  if (config.collective == CollectiveKind::kDirect && config.transport == TransportKind::kShm) {
    return without_transport(allreduce::make_direct_collective(endpoint_options(context, context.rank, config.workers),
                                                               context.control,
                                                               clock.now() + from_seconds(config.timeout_seconds)));
  }
  Result<std::unique_ptr<Transport>> transport = connect_endpoint(context, context.rank, config.workers, clock);
  if (!transport.ok()) return transport.status();
  const allreduce::ScheduleOptions options{.kind = schedule_kind_of(config).value_or(allreduce::ScheduleKind::kRing),
                                           .segment_bytes = static_cast<std::size_t>(config.segment_bytes),
                                           .ranks_by_host = ranks_by_host(config)};
  HostCollective connected;
  connected.collective = allreduce::make_schedule_collective(**transport, options);
  connected.transport = std::move(*transport);
  return connected;
}

}  // namespace syncopate::experiments

#include "experiments/cluster/process/inside_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "allreduce/schedule/algorithms.h"

namespace syncopate::experiments {

allreduce::RanksByHost ranks_by_host(const ResolvedRun& config, const std::vector<int>& workers) {
  const bool has_hosts_of_their_own = config.cluster == ClusterKind::kSimulated && config.hosts.empty();
  const std::vector<HostSlots> hosts =
      has_hosts_of_their_own ? numbered_hosts(own_hosts_of(config), 1) : hosts_of(config);
  const std::vector<std::size_t> host_of = hosts_of_workers(hosts, config.workers);
  allreduce::RanksByHost ranks(hosts.size());
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    ranks[host_of[static_cast<std::size_t>(workers[rank])]].push_back(static_cast<int>(rank));
  }
  std::erase_if(ranks, [](const std::vector<int>& of_host) { return of_host.empty(); });
  return ranks;
}

Result<std::unique_ptr<allreduce::DirectCollective>> connect_inside_host(const RoleContext& context,
                                                                         const RankAssignment& assignment,
                                                                         const allreduce::RanksByHost& ranks_by_host,
                                                                         TimePoint deadline) {
  const std::size_t host = allreduce::host_of(assignment.rank, ranks_by_host);
  const std::vector<int>& members = ranks_by_host[host];
  TransportOptions options = endpoint_options(context, assignment);
  options.group = fmt::format("host-{}@{}", host, assignment.membership_epoch);
  options.rank = static_cast<int>(std::ranges::find(members, assignment.rank) - members.begin());
  options.size = static_cast<int>(members.size());
  return context.host.connect_memory(options, context.control, deadline, members);
}

}  // namespace syncopate::experiments

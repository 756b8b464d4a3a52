#include "experiments/cluster/process/inside_host.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::experiments {

allreduce::RanksByHost ranks_by_host(const ResolvedRun& config, const std::vector<int>& workers) {
  const std::vector<HostSlots> hosts = hosts_of(config);
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
  const auto is_here = [&](const std::vector<int>& ranks) {
    return std::ranges::find(ranks, assignment.rank) != ranks.end();
  };
  const auto host = std::ranges::find_if(ranks_by_host, is_here);
  TransportOptions options = endpoint_options(context, assignment);
  options.group = fmt::format("host-{}@{}", host - ranks_by_host.begin(), assignment.membership_epoch);
  options.rank = static_cast<int>(std::ranges::find(*host, assignment.rank) - host->begin());
  options.size = static_cast<int>(host->size());
  return allreduce::make_direct_collective(options, context.control, deadline, *host);
}

}  // namespace syncopate::experiments

#include "experiments/config/rules/colocation_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/group_limits.h"
#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

Status refused(const ResolvedRun& config, const std::string& why) {
  return Status::invalid_argument(fmt::format("--servers={}: {}", servers_text(config), why));
}

// How many spare servers there may be, and on which hosts.
Status check_places(const ResolvedRun& config) {
  const std::vector<HostProcesses> links = processes_by_link(config);
  const auto workers_of = [](const HostProcesses& host) { return host.workers; };
  const auto hosts = std::ranges::count_if(links, [](const HostProcesses& host) { return host.workers > 0; });
  if (config.spare_servers >= hosts) {
    return refused(config,
                   fmt::format("{0} spare servers leave nothing for those of {1} host{2} with workers, and hold "
                               "all by themselves; use fewer than {1}, or --servers={0}",
                               config.spare_servers, hosts, hosts == 1 ? "" : "s"));
  }
  if (config.servers > kMostServers) {
    return refused(config, fmt::format("{} servers with those of {} workers; use at most {} in all", config.servers,
                                       config.workers, kMostServers));
  }
  const int most = std::ranges::max(links, {}, workers_of).workers;
  if (std::ranges::any_of(
          links, [&](int workers) { return workers > 0 && workers < most; }, workers_of)) {
    return refused(config, fmt::format("hosts of --hosts={} have unequal numbers of the {} workers, and no one split "
                                       "fills their links alike; give each as many, or leave +{} out",
                                       to_text(config.hosts), config.workers, config.spare_servers));
  }
  const bool share_hosts = !config.hosts.empty() && (spans_hosts(config) || config.cluster != ClusterKind::kReal);
  const auto without_slots = std::ranges::count(config.hosts, 0, &HostSlots::slots);
  if (share_hosts && without_slots < config.spare_servers) {
    return refused(config, fmt::format("spare servers have hosts of their own, and --hosts={} has {} without slots; "
                                       "give one for each, as in --hosts=A:2,B:2,C:0",
                                       to_text(config.hosts), without_slots));
  }
  return {};
}

}  // namespace

Status validate_colocation(const ResolvedRun& config) {
  if (!is_colocated(config)) return {};
  if (config.launcher == LauncherKind::kMpirun) {
    return refused(config,
                   "a process of mpirun is a worker or a server; use --launcher=local, or give the number of servers");
  }
  if (!has_spare_servers(config)) return {};
  if (is_hybrid(config) || has_tables(config)) {
    return refused(config, "rows of tables go to all servers alike; use --servers=colocated, or --embeddings=dense");
  }
  if (is_pipelined(config)) {
    return refused(config, fmt::format("the split is of workers that have the whole model; leave --pipeline={} out, or "
                                       "use --servers=colocated",
                                       config.pipeline));
  }
  if (!ps::takes_parts(config.sharding)) {
    return refused(config, fmt::format("--sharding={} gives shards equal parts; use balanced, least-loaded or whole",
                                       name_of(config.sharding)));
  }
  return check_places(config);
}

}  // namespace syncopate::experiments

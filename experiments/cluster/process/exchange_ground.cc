#include "experiments/cluster/process/exchange_ground.h"

namespace syncopate::experiments {
namespace {

std::vector<ExchangeGround::Host> links_of(const ResolvedRun& config) {
  std::vector<ExchangeGround::Host> links;
  const bool have_links = config.cluster != ClusterKind::kReal || spans_hosts(config) || config.hosts.empty();
  const std::vector<HostProcesses> shared = have_links ? shared_hosts_of(config) : std::vector<HostProcesses>();
  for (const HostProcesses& host : shared) links.push_back({.workers = host.workers, .servers = host.servers});
  if (!links.empty()) return links;
  links.assign(static_cast<std::size_t>(config.workers), {.workers = 1, .servers = is_colocated(config) ? 1 : 0});
  for (int server = 0; server < separate_servers_of(config); ++server) links.push_back({.workers = 0, .servers = 1});
  return links;
}

}  // namespace

ExchangeGround exchange_ground(const ResolvedRun& config, const std::optional<allreduce::LinkModel>& measured) {
  allreduce::LinkModel link = measured.value_or(kMemoryLink);
  if (config.shape) {
    link = {.latency = seconds(config.shape->delay), .seconds_per_byte = 1 / config.shape->payload_bytes_per_second()};
  }
  return {.hosts = links_of(config),
          .seconds_per_byte = link.seconds_per_byte,
          .latency = link.latency,
          .sums_whole_tables = config.sparse_exchange != allreduce::SparseExchange::kRows};
}

}  // namespace syncopate::experiments

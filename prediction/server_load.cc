#include "prediction/server_load.h"

#include <algorithm>

namespace syncopate::prediction {

double even_part(const Network& network, const ExchangePlan& plan) {
  return plan.spare_servers > 0 ? byteps_parts(network.hosts(), plan.spare_servers).on_worker_host : 1.0 / plan.servers;
}

std::vector<double> bytes_on_servers(const ModelProfile& profile, const ExchangePlan& plan) {
  const auto servers = static_cast<std::size_t>(plan.servers);
  if (plan.sharding == Sharding::kEven) {
    if (plan.spare_servers == 0) return std::vector<double>(servers, profile.bytes() / plan.servers);
    const BytepsParts parts = byteps_parts(plan.servers, plan.spare_servers);
    std::vector<double> bytes(servers, profile.bytes() * parts.on_worker_host);
    bytes.resize(servers + static_cast<std::size_t>(plan.spare_servers), profile.bytes() * parts.on_server_host);
    return bytes;
  }
  std::vector<double> sizes;
  for (const TensorProfile& tensor : profile.tensors) {
    sizes.push_back(static_cast<double>(sizeof(float)) * static_cast<double>(tensor.parameters));
  }
  const std::vector<int> placed = place_greedily(sizes, plan.servers);
  std::vector<double> bytes(servers);
  for (std::size_t i = 0; i < sizes.size(); ++i) bytes[static_cast<std::size_t>(placed[i])] += sizes[i];
  return bytes;
}

Network of_pushers(const Network& network, const ExchangePlan& plan) {
  Network pushers = network;
  if (!plan.aggregated) return pushers;
  pushers.workers = network.hosts();
  pushers.workers_per_host = 1;
  return pushers;
}

double busiest_link_bytes(const ModelProfile& profile, const Network& all, const ExchangePlan& plan) {
  const Network network = of_pushers(all, plan);
  const std::vector<double> servers = bytes_on_servers(profile, plan);
  double busiest = 0;
  std::vector<double> on_hosts(static_cast<std::size_t>(network.hosts()));  // of those with workers
  for (std::size_t server = 0; server < servers.size(); ++server) {
    if (plan.colocated && server < static_cast<std::size_t>(plan.servers)) {
      on_hosts[server % on_hosts.size()] += servers[server];
    } else {
      busiest = std::max(busiest, network.workers * servers[server]);
    }
  }
  int placed = 0;
  for (const double held : on_hosts) {
    const int own = std::min(network.workers_per_host, network.workers - placed);  // the last host may have fewer
    placed += own;
    busiest = std::max(busiest, (network.workers - own) * held + own * (profile.bytes() - held));
  }
  return busiest;
}

}  // namespace syncopate::prediction

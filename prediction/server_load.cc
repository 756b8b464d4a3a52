#include "prediction/server_load.h"

#include <algorithm>

namespace syncopate::prediction {

std::vector<double> bytes_on_servers(const ModelProfile& profile, const ExchangePlan& plan) {
  const auto servers = static_cast<std::size_t>(plan.servers);
  if (plan.sharding == Sharding::kEven) return std::vector<double>(servers, profile.bytes() / plan.servers);
  std::vector<double> sizes;
  for (const TensorProfile& tensor : profile.tensors) {
    sizes.push_back(static_cast<double>(sizeof(float)) * static_cast<double>(tensor.parameters));
  }
  const std::vector<int> placed = place_greedily(sizes, plan.servers);
  std::vector<double> bytes(servers);
  for (std::size_t i = 0; i < sizes.size(); ++i) bytes[static_cast<std::size_t>(placed[i])] += sizes[i];
  return bytes;
}

double busiest_link_bytes(const ModelProfile& profile, const Network& network, const ExchangePlan& plan) {
  if (plan.colocated && network.hosts() == 1) return 0;
  const double all = profile.bytes();
  const double of_host = std::min(network.workers_per_host, network.workers);
  const double elsewhere = plan.colocated ? network.workers - of_host : network.workers;
  const bool some_host_has_none = !plan.colocated || plan.servers < network.hosts();
  double busiest = some_host_has_none ? of_host * all : 0;
  for (const double bytes : bytes_on_servers(profile, plan)) {
    const double of_its_workers = plan.colocated ? of_host * (all - bytes) : 0;
    busiest = std::max(busiest, elsewhere * bytes + of_its_workers);
  }
  return busiest;
}

}  // namespace syncopate::prediction

#include "experiments/cluster/process/exchange_ground.h"

namespace syncopate::experiments {
namespace {

std::vector<ExchangeGround::Host> links_of(const ResolvedRun& config) {
  std::vector<ExchangeGround::Host> links;
  for (const HostProcesses& link : processes_by_link(config)) {
    links.push_back({.workers = link.workers, .servers = link.servers});
  }
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

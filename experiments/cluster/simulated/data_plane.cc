#include "experiments/cluster/simulated/data_plane.h"

#include <algorithm>
#include <set>
#include <utility>

#include "allreduce/collective/part_header.h"
#include "experiments/cluster/process/data_of.h"

namespace syncopate::experiments {
namespace {

std::vector<int> hosts_of_processes(const ResolvedRun& config, const JobPlan& plan) {
  std::vector<int> hosts(plan.processes.size());
  int own_hosts = 0;  // if none are named
  for (std::size_t process = 0; process < hosts.size(); ++process) {
    const auto host = std::ranges::find(config.hosts, plan.processes[process].host, &HostSlots::name);
    const auto named = static_cast<int>(host - config.hosts.begin());  // the evaluator's, which sends nothing: one more
    if (!plan.processes[process].within) hosts[process] = config.hosts.empty() ? own_hosts++ : named;
  }
  for (std::size_t process = 0; process < hosts.size(); ++process) {
    if (const auto whole = plan.processes[process].within) hosts[process] = hosts[*whole];
  }
  return hosts;
}

simulation::Fabric fabric_of(const ResolvedRun& config, int hosts) {
  const LinkShape link = config.shape.value_or(usual_simulated_link());
  return {.hosts = hosts,
          .bytes_per_second = link.payload_bytes_per_second(),
          .latency = link.delay,
          .local_bytes_per_second = static_cast<double>(config.inside.bits_per_second) / 8,
          .local_latency = config.inside.delay,
          .racks = config.fabric.racks,
          .oversubscription = config.fabric.oversubscription};
}

}  // namespace

DataPlane::DataPlane(simulation::World& world, const ResolvedRun& config, const JobPlan& plan, std::int64_t scale)
    : world_(world),
      host_of_(hosts_of_processes(config, plan)),
      workers_a_host_(static_cast<int>(workers_of_largest_host(config))),
      source_("of payload, as simulated over " + config.shape.value_or(usual_simulated_link()).describe("a host")),
      fabric_(fabric_of(config, 1 + *std::ranges::max_element(host_of_))),
      scale_(scale),
      wire_(world, fabric_, {.model = config.network, .links = {}}, scale) {}

Result<std::unique_ptr<Transport>> DataPlane::connect(std::size_t process, const TransportOptions& options,
                                                      Rendezvous& rendezvous, TimePoint deadline) {
  const auto rank = static_cast<std::size_t>(options.rank), size = static_cast<std::size_t>(options.size);
  Group& group = groups_[options.group];
  group.hosts.resize(size);
  group.hosts[rank] = host_of_[process];
  group.processes.resize(size);
  group.processes[rank] = process;
  SYNCOPATE_RETURN_IF_ERROR(
      rendezvous.exchange(options.group, options.rank, options.size, std::to_string(process), deadline).status());
  if (group.endpoints.empty()) {
    group.number = wire_.groups();
    group.endpoints = wire_.connect(group.hosts, group.processes);
  }
  return std::move(group.endpoints[rank]);
}

Result<std::unique_ptr<allreduce::DirectCollective>> DataPlane::connect_memory(std::size_t process,
                                                                               const TransportOptions& options,
                                                                               Rendezvous& rendezvous,
                                                                               TimePoint deadline,
                                                                               std::vector<int> called) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, connect(process, options, rendezvous, deadline));
  std::shared_ptr<ArenasOfRanks>& arenas = groups_.at(options.group).arenas;
  if (!arenas) arenas = std::make_shared<ArenasOfRanks>(static_cast<std::size_t>(options.size));
  return std::unique_ptr<allreduce::DirectCollective>(
      std::make_unique<SimulatedMemory>(std::move(transport), arenas, world_.clock(), std::move(called)));
}

SimulatedSchedules* DataPlane::schedules_of(const ResolvedRun& config, double sum_time, const std::string& name) {
  Group& group = groups_.at(name);
  if (group.schedules) return group.schedules.get();
  if (group.hosts.size() < 2 || config.gossip != Gossip::kOff || config.elastic || !config.faults.empty()) {
    return nullptr;
  }
  group.schedules = std::make_unique<SimulatedSchedules>(
      world_, wire_, group.number, static_cast<int>(group.hosts.size()), ring_prices(config, sum_time, group));
  return group.schedules.get();
}

// None where parts of several ranks share a link, or it is shared with what servers are sent, or with what workers send
// each other that have parts of the model.
std::optional<SimulatedSchedules::RingPrices> DataPlane::ring_prices(const ResolvedRun& config, double sum_time,
                                                                     const Group& group) const {
  const std::set<int> hosts(group.hosts.begin(), group.hosts.end());
  if (hosts.size() < group.hosts.size() || fabric_.racks > 1) return std::nullopt;
  if (has_servers(config) || divides_model(config)) return std::nullopt;
  const simulation::NetworkOptions network{.model = config.network, .links = {}};
  const simulation::Link link = fabric_.links().front();
  const auto on_link = [network, link, scale = static_cast<std::uint64_t>(scale_)](std::size_t bytes) {
    return simulation::ticks_alone(network, link, link.latency, sizeof(allreduce::PartHeader) + scale * bytes);
  };
  if (!on_link(1)) return std::nullopt;
  return SimulatedSchedules::RingPrices{
      .segment = static_cast<std::size_t>(config.segment_bytes) / sizeof(float),
      .costs = {.ticks_on_link = [on_link](std::size_t bytes) { return *on_link(bytes); },
                .ticks_of_latency = link.latency,
                .sum = [sum_time](std::size_t bytes) { return from_seconds(sum_time * static_cast<double>(bytes)); }}};
}

ProcessHost::KnownLinks DataPlane::links() const {
  const auto scale = static_cast<double>(scale_);
  const allreduce::LinkModel across{.latency = seconds(fabric_.latency),
                                    .seconds_per_byte = scale / fabric_.bytes_per_second};
  const allreduce::LinkModel inside{.latency = seconds(fabric_.local_latency),
                                    .seconds_per_byte = scale * workers_a_host_ / fabric_.local_bytes_per_second};
  return {.links = {.inside = inside, .across = across, .two_level_inside = inside},
          .source = source_.c_str(),
          .bytes_for_each = scale};
}

Result<std::shared_ptr<const worker::DatasetPair>> DataPlane::open_data(const RunSettings& config) {
  if (!data_) {
    SYNCOPATE_ASSIGN_OR_RETURN(worker::DatasetPair data, open_data_of(config));
    data_ = std::make_shared<const worker::DatasetPair>(std::move(data));
  }
  return data_;
}

}  // namespace syncopate::experiments

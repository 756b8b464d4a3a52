#include "experiments/cluster/simulated/data_plane.h"

#include <utility>

#include "experiments/cluster/process/data_of.h"

namespace syncopate::experiments {
namespace {

// Within a host, where no process has another beside it yet.
constexpr double kLocalBytesPerSecond = 5e9;
constexpr Duration kLocalLatency = std::chrono::microseconds(5);

simulation::Fabric fabric_of(const ResolvedRun& config, std::size_t hosts) {
  const LinkShape link = config.shape.value_or(usual_simulated_link());
  return {.hosts = static_cast<int>(hosts),
          .bytes_per_second = link.payload_bytes_per_second(),
          .latency = link.delay,
          .local_bytes_per_second = kLocalBytesPerSecond,
          .local_latency = kLocalLatency};
}

}  // namespace

DataPlane::DataPlane(simulation::World& world, const ResolvedRun& config, const JobPlan& plan, std::int64_t scale)
    : fabric_(fabric_of(config, plan.processes.size())),
      scale_(scale),
      wire_(world, fabric_, {.model = config.network, .links = {}}, scale) {}

Result<std::unique_ptr<Transport>> DataPlane::connect(std::size_t process, const TransportOptions& options,
                                                      Rendezvous& rendezvous, TimePoint deadline) {
  const auto rank = static_cast<std::size_t>(options.rank), size = static_cast<std::size_t>(options.size);
  Group& group = groups_[options.group];
  group.hosts.resize(size);
  group.hosts[rank] = static_cast<int>(process);
  SYNCOPATE_RETURN_IF_ERROR(
      rendezvous.exchange(options.group, options.rank, options.size, std::to_string(process), deadline).status());
  if (group.endpoints.empty()) group.endpoints = wire_.connect(group.hosts);
  return std::move(group.endpoints[rank]);
}

ProcessHost::KnownLink DataPlane::link() const {
  const auto scale = static_cast<double>(scale_);
  return {.link = {.latency = seconds(fabric_.latency), .seconds_per_byte = scale / fabric_.bytes_per_second},
          .source = "as simulated",
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

#include "experiments/config/rules/command_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::experiments {

namespace {

Status refusal(const ResolvedRun& config, const std::string& what, const char* why) {
  return Status::invalid_argument(fmt::format("{}: {} (the program is {})", what, why, command_of(config)));
}

// Its ranks compute here, and all else is simulated.
Status validate_simulated(const ResolvedRun& config) {
  const ComputeModel& compute = config.compute;
  if (!compute.is_solo() && !compute.step) {
    return refusal(config, "--compute=" + compute.to_string(),
                   "must be the time of a step, as in --compute=5ms, or solo: only the program knows its model");
  }
  if (config.elastic) {
    return refusal(config, "--elastic", "no rank of a simulated run is lost; leave it out");
  }
  if (averages_weights(config)) {
    return refusal(
        config, "allreduce:" + averaging_of(config),
        "averages weights, which is for Syncopate's own worker; use allreduce, or ps with local-sgd or easgd");
  }
  return {};
}

}  // namespace

Status validate_command(const ResolvedRun& config) {
  if (!runs_command(config)) return {};
  if (shards_state(config) || is_hybrid(config)) {
    return refusal(config, name_of(config.mode), "is for Syncopate's own worker; use allreduce, or ps");
  }
  if (is_colocated(config)) {
    return refusal(config, "--servers=" + servers_text(config),
                   "the ranks of a program start its servers, as processes of their own; give their number, as in "
                   "--servers=2");
  }
  if (config.cluster == ClusterKind::kSimulated) return validate_simulated(config);
  const auto refused = [&](const std::string& what, const char* why) { return refusal(config, what, why); };
  if (config.steps) {
    return refused("--steps", "the program itself says how long it trains; leave it out, or add --cluster=simulated");
  }
  if (config.launcher == LauncherKind::kMpirun) {
    return refused("--launcher=mpirun", "Syncopate's own launcher starts a program of your own; leave it out");
  }
  if (std::ranges::any_of(config.hosts, [](const HostSlots& host) { return host.slots == 0; })) {
    return refused("--hosts=" + to_text(config.hosts),
                   "servers of a program are started by its ranks, on their hosts; leave hosts without slots out");
  }
  if (!config.stragglers.empty()) return refused("--straggler", "is for Syncopate's own worker; leave it out");
  if (averages_weights(config)) {
    return refused("allreduce:" + averaging_of(config),
                   "averages weights, which is for Syncopate's own worker; use "
                   "allreduce, or ps with local-sgd or easgd");
  }
  const bool is_in_memory = config.transport == TransportKind::kShm;
  if (config.shape && is_in_memory && is_distributed(config)) {
    return refused(fmt::format("--shape={}", config.shape->to_string()),
                   "programs move shared memory's bytes at its own pace; leave --transport=shm out");
  }
  const CollectiveKind collective = is_in_memory ? CollectiveKind::kDirect : CollectiveKind::kBySize;
  if (sums_among_workers(config) && config.collective != collective) {
    return refused(fmt::format("allreduce:{}", name_of(config.collective)),
                   "programs sum directly in shared memory, or choose by size with --transport=sockets; use allreduce");
  }
  if (is_in_memory || !is_distributed(config)) return {};
  const TransportKind sockets = has_servers(config) ? TransportKind::kTcp : TransportKind::kSockets;
  if (config.transport == sockets) return {};
  return refused(fmt::format("--transport={}", name_of(config.transport)), "must be shm or sockets");
}

}  // namespace syncopate::experiments

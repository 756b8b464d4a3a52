#include "experiments/config/rules/fault_rules.h"

#include <fmt/format.h>

#include "experiments/config/rules/survival_rules.h"

namespace syncopate::experiments {
namespace {

// Returns why links cannot be impaired; empty if they can.
std::string why_no_links(const ResolvedRun& config) {
  if (!is_distributed(config)) return "--mode=local has none";
  if (is_colocated(config)) {
    return "with --servers=colocated a worker and its server share one; give the number of servers, as in --servers=2";
  }
  if (has_servers(config)) return {};
  if (config.collective == CollectiveKind::kMpi || is_nccl(config.collective)) {
    return fmt::format("--collective={} has wires of its own; use ring, or another of our schedules",
                       name_of(config.collective));
  }
  if (config.collective == CollectiveKind::kDirect && config.transport == TransportKind::kShm) {
    return "--collective=direct sends nothing in shared memory, where ranks read each other's buffers; use ring, or "
           "direct with --transport=sockets";
  }
  return {};
}

// Returns why no gradient can hold a NaN; empty if one can.
std::string why_no_gradients(const ResolvedRun& config) {
  if (is_profile(config)) return "a profile computes none; name a model that learns";
  if (config.device == DeviceKind::kCuda) return "they lie in a GPU's memory; use --device=cpu";
  if (is_pipelined(config)) return "a stage has not the tensor that it would be in; leave --pipeline out";
  if (splits_layers(config)) return "a worker has a part of the tensor that it would be in; leave --tensor out";
  return {};
}

}  // namespace

FaultScene fault_scene_of(const ResolvedRun& config, std::int64_t total_steps) {
  const Recovery recovery = recovery_of(config);
  return {.workers = config.workers,
          .servers = separate_servers_of(config),
          .standbys = may_have_replicas(config) ? config.servers * config.replicas : 0,
          .no_gradients = why_no_gradients(config),
          .no_links = why_no_links(config),
          .no_servers = is_colocated(config)
                            ? "with --servers=colocated a server is in its worker's process; strike that, as in "
                              "kill:worker0@step50"
                            : "",
          .total_steps = total_steps,
          .timeout = from_seconds(config.timeout_seconds),
          .workers_to_spare = recovery.survives_workers ? config.workers - 1 : 0,
          .spares_servers = recovery.has_standbys};
}

Status validate_faults(const ResolvedRun& config, std::int64_t total_steps) {
  if (config.faults.empty()) return {};
  if (spans_hosts(config) && config.launcher == LauncherKind::kMpirun) {
    return Status::invalid_argument(fmt::format(
        "--fault={}: what mpirun carries on other hosts cannot be signalled from here; use --launcher=local",
        config.faults.to_string()));
  }
  const Status status = config.faults.check(fault_scene_of(config, total_steps));
  return status.ok() ? Status() : Status(status.code(), "--fault=" + status.message());
}

}  // namespace syncopate::experiments

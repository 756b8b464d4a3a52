#include "experiments/cluster/plan/descriptor_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace syncopate::experiments {
namespace {

// Descriptors of any process that communicates: files, ZeroMQ's own, watches.
constexpr std::int64_t kOfItself = 32;
// For each process the coordinator has a connection, a handle, its standard input, and for workers a file of steps.
constexpr std::int64_t kOfEachProcess = 4;
// A simulated process needs none, but that the coordinator keeps a file of steps for each worker.
constexpr std::int64_t kStepsOfASimulatedWorker = 1;
// For a program on any of several hosts it also has a pipe from it, its log, and its file of steps twice.
constexpr std::int64_t kOfEachRelay = 4;
// For each other member of its group an endpoint has links and memory, and connections in both directions.
constexpr std::int64_t kOfEachPeer = 6;
// The direct collective's memory, which every rank shows to every other: weights, gradients and times.
constexpr std::int64_t kArenas = 3;

// Returns those of the process that has most.
std::int64_t endpoints_of_process(const ResolvedRun& config) {
  if (!has_servers(config)) return 1;
  const ps::PsGroup group = ps_group_of(config);
  const int of_worker = is_colocated(config) ? 1 : 0;
  return std::max(group.shards_per_server * stages_of(config) + of_worker, group.shards_per_spare);
}

// By group that a worker is in: the workers that sum gradients; of a divided model, the stages of a pipeline, and those
// that have the parts of its layers; they and all shards, where there are any.
std::vector<std::int64_t> members_of_groups(const ResolvedRun& config) {
  std::vector<std::int64_t> groups;
  if (sums_among_workers(config)) groups.push_back(model_replicas(config));
  if (is_pipelined(config)) groups.push_back(config.pipeline);
  if (splits_layers(config)) groups.push_back(config.tensor);
  if (has_servers(config)) {
    groups.push_back(model_replicas(config) + std::int64_t{ps_group_of(config).shards()} * (1 + config.replicas));
  }
  return groups;
}

std::int64_t peers_of(const ResolvedRun& config) {
  std::int64_t peers = 0;
  for (const std::int64_t members : members_of_groups(config)) peers += members - 1;
  return peers;
}

std::int64_t pairs_of(std::int64_t members) { return members * (members - 1) / 2; }

bool may_sum_inside_hosts(const ResolvedRun& config) {
  return may_sum_on_two_levels(config) || aggregates_on_hosts(config);
}

const char* way_out_of(const ResolvedRun& config) {
  if (aggregates_on_hosts(config)) return "--aggregation=off";
  return may_sum_on_two_levels(config) ? "--collective=ring" : "--transport=sockets";
}

}  // namespace

std::int64_t descriptors_of_coordinator(const JobPlan& plan) {
  const bool has_relays = has_remote_processes(plan) && !plan.processes.front().command.empty();
  return kOfItself +
         (kOfEachProcess + (has_relays ? kOfEachRelay : 0)) * static_cast<std::int64_t>(plan.processes.size());
}

std::int64_t descriptors_of_process(const ResolvedRun& config) {
  const std::int64_t connections = 2 * std::max(config.connections, 1);
  const std::int64_t inside_host =
      may_sum_inside_hosts(config) ? (workers_of_largest_host(config) - 1) * kOfEachPeer : 0;
  return kOfItself + inside_host + endpoints_of_process(config) * peers_of(config) * (kOfEachPeer + connections);
}

std::int64_t descriptors_on_their_way(const ResolvedRun& config) {
  constexpr std::int64_t kOfDirect = 1 + 2 * kArenas;  // between two ranks
  if (may_sum_inside_hosts(config)) return pairs_of(workers_of_largest_host(config)) * kOfDirect;
  if (config.transport != TransportKind::kShm || config.cluster != ClusterKind::kReal || runs_command(config)) return 0;
  const bool shows_all = sums_among_workers(config) && config.collective == CollectiveKind::kDirect;
  std::int64_t pairs = 0;
  for (const std::int64_t members : members_of_groups(config)) pairs += pairs_of(members);
  return pairs + (shows_all ? (kOfDirect - 1) * pairs_of(config.workers) : 0);
}

Status check_descriptors(const ResolvedRun& config, const JobPlan& plan, std::int64_t limit, bool is_root) {
  const auto refused = [&](const char* who, std::int64_t needed, const char* fewer) {
    return Status::invalid_argument(fmt::format(
        "{} may need {} file descriptors, and may have {}: raise the hard limit (ulimit -Hn), or use fewer {}", who,
        needed, limit, fewer));
  };
  if (config.cluster == ClusterKind::kSimulated) {
    const std::int64_t needed = kOfItself + kStepsOfASimulatedWorker * config.workers;
    return needed <= limit ? Status() : refused("this run", needed, "workers");
  }
  if (const std::int64_t on_their_way = descriptors_on_their_way(config); on_their_way > limit && !is_root) {
    return Status::invalid_argument(
        fmt::format("over shared memory {} file descriptors of this run may be on their way at once, and a user may "
                    "have {}: raise the hard limit (ulimit -Hn), or use fewer processes or {}",
                    on_their_way, limit, way_out_of(config)));
  }
  const std::int64_t needed = std::max(descriptors_of_coordinator(plan), descriptors_of_process(config));
  return needed <= limit ? Status() : refused("a process of this run", needed, "processes or --connections");
}

}  // namespace syncopate::experiments

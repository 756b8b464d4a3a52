#include "experiments/config/resolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/config/rules/config_rules.h"
#include "experiments/config/rules/survival_rules.h"

namespace syncopate::experiments {
namespace {

// Returns "results/20261121-155054-ps-bounded-4". Everything else in `config` must have been settled.
std::string usual_output(const ResolvedRun& config, const std::string& stamp) {
  std::string output = fmt::format("results/{}-{}", stamp, name_of(config.mode));
  const auto add = [&output](std::string part) {
    std::ranges::replace(part, ':', '-');
    output += "-" + part;
  };
  if (has_servers_alone(config)) add(config.consistency.to_string());
  if (sums_among_workers(config)) add(name_of(config.collective));
  if (may_compress(config) && compresses(config)) add(to_string(config.compress));
  if (averages_weights(config)) add(averaging_of(config));
  if (shards_state(config)) add(fmt::format("stage-{}", config.stage));
  if (is_pipelined(config)) add(fmt::format("pipeline-{}", config.pipeline));
  if (splits_layers(config)) add(fmt::format("tensor-{}", config.tensor));
  return output;
}

LinkShape link_of(const RunRequest& request) {
  const bool has_link = request.described_cluster && request.described_cluster->link;
  return has_link ? *request.described_cluster->link : usual_simulated_link();
}

// Settles how long things take in a simulated cluster.
void settle_times(const RunRequest& request, ResolvedRun& config) {
  const ClusterDescription described = config.described_cluster.value_or(ClusterDescription());
  config.inside = request.inside.value_or(described.inside.value_or(usual_link_inside()));
  const ComputeModel usual = {
      .step = {}, .flops_per_second = {}, .profile = is_profile(config) ? std::string(ComputeModel::kOwnProfile) : ""};
  config.compute = request.compute.value_or(described.compute.value_or(usual));
  using Source = ProcessingModel::Source;
  const std::string codec = may_compress(config) && compresses(config) ? to_string(config.compress) : "";
  ProcessingModel processing = described.processing_of(name_of(config.optimizer), codec);
  if (processing.source == Source::kNone && config.compute.is_solo()) processing.source = Source::kSolo;
  config.processing = request.processing.value_or(processing);
}

CollectiveKind collective_of(const ResolvedRun& config) {
  const bool by_nccl = config.device == DeviceKind::kCuda && !config.shape && !compresses(config);
  if (sums_gradients(config) && by_nccl) return CollectiveKind::kNccl;
  // Used only at the beginning and at the end: not worth a measurement.
  if (gossips_asynchronously(config)) return CollectiveKind::kRing;
  const bool in_memory = config.transport == TransportKind::kShm && !config.shape;
  if ((shards_state(config) || divides_model(config)) && !in_memory) return CollectiveKind::kRing;
  return in_memory ? CollectiveKind::kDirect : CollectiveKind::kBySize;
}

ResolvedRun settle(const RunRequest& request, const Placement& placement, const std::string& stamp) {
  ResolvedRun config{static_cast<const RunSettings&>(request)};
  config.workers = workers_of(request);
  if (is_colocated(config)) config.servers = config.workers + config.spare_servers;
  if (is_hybrid(config)) config.consistency = *ps::Consistency::parse("sync");
  if (!may_have_replicas(config)) config.replicas = 0;
  config.device = runs_command(config) ? DeviceKind::kCpu : placement.device;
  config.share_gpu = placement.share_gpu && !runs_command(config);
  config.gpu = placement.gpu;
  config.listen_address = placement.listen_address;
  config.learning_rate = learning_rate_of(request);
  config.batch_size = batch_size_of(request);
  config.warmup_steps = warmup_steps_of(request);
  // A profile has no samples, and takes as many as a batch of all workers at the least.
  if (is_profile(config)) {
    const std::int64_t global = static_cast<std::int64_t>(config.workers) * config.batch_size;
    config.train_samples = std::max<std::int64_t>(config.train_samples, global);
  }
  const bool is_easgd = config.consistency.is_elastic();
  // Zhang, Choromanska and LeCun 2015: beta = 0.9 is the center's share of all workers together.
  config.elastic_alpha = request.elastic_alpha.value_or(is_easgd ? 0.9 / config.workers : 0);
  const bool is_simulated = config.cluster == ClusterKind::kSimulated;
  if (is_simulated && !config.shape && is_distributed(config)) config.shape = link_of(request);
  const TransportKind between_hosts = has_servers(config) ? TransportKind::kTcp : TransportKind::kSockets;
  config.transport = request.transport.value_or(
      exchanges_between_hosts(config) || is_simulated || (runs_command(config) && config.shape) ? between_hosts
                                                                                                : TransportKind::kShm);
  // Where a program computes beside its wire, ZeroMQ's threads move the bytes between it and servers.
  if (runs_command(config) && has_servers(config) && config.transport == TransportKind::kSockets) {
    config.transport = TransportKind::kTcp;
  }
  const bool whole_tensors = goes_by_layer(traits_of(config.optimizer));
  config.sharding =
      request.sharding.value_or(whole_tensors ? ps::ShardingPolicy::kWhole : ps::ShardingPolicy::kBalanced);
  config.chunk_bytes = request.chunk_bytes.value_or(usual_chunk_bytes(config.transport));
  config.collective = request.collective.value_or(collective_of(config));
  if (is_simulated) settle_times(request, config);
  config.stall_warning_seconds =
      request.stall_warning_seconds.value_or(usual_stall_warning_seconds(config.timeout_seconds));
  config.output = request.output.value_or(usual_output(config, stamp));
  return config;
}

// NCCL sums on GPUs alone.
Status check_device(const ResolvedRun& config) {
  if (!sums_among_workers(config) || !is_nccl(config.collective) || config.device == DeviceKind::kCuda) {
    return {};
  }
  return Status::invalid_argument(
      fmt::format("--collective={} needs --device=cuda: NCCL sums on GPUs alone; on the CPU use ring or mpi",
                  name_of(config.collective)));
}

}  // namespace

Result<ResolvedRun> resolve(const RunRequest& request, const Placement& placement, const std::string& stamp) {
  ResolvedRun config = settle(request, placement, stamp);
  SYNCOPATE_RETURN_IF_ERROR(check_device(config));
  SYNCOPATE_RETURN_IF_ERROR(check_rules(config));
  return config;
}

ResolvedRun presumed(const RunRequest& request) {
  return settle(request,
                {.device = request.device.value_or(DeviceKind::kCpu),
                 .share_gpu = request.share_gpu,
                 .listen_address = request.listen_address.value_or("")},
                "");
}

Status check(const RunRequest& request) {
  const ResolvedRun config = presumed(request);
  if (request.device) SYNCOPATE_RETURN_IF_ERROR(check_device(config));
  return check_rules(config);
}

}  // namespace syncopate::experiments

#include "experiments/lab/why/finished_pace.h"

#include <algorithm>
#include <numeric>

#include "allreduce/schedule/cost_model.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/resolution.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run/run_prediction.h"

namespace syncopate::experiments {
namespace {

// Returns RunPace::to_wait_less.
std::string less_waiting(const ResolvedRun& config) {
  if (shards_weights(config)) {
    return gathers_on_demand(config) ? "give workers batches that take as long"
                                     : "meet once a step, and not in each layer (--gather=on-demand)";
  }
  if (!divides_model(config) || (has_servers(config) && goes_at_own_pace(config))) return {};
  return is_pipelined(config) && model_replicas(config) > 1 && !stashes_weights(config)
             ? "let pipelines go on by themselves (--mode=ps --consistency=async)"
             : "give workers parts of the model that take as long";
}

// Which pushes of others a worker waits for.
void set_rule(const ResolvedRun& config, RunPace& pace) {
  pace.lead.reset();
  pace.quorum = config.workers;
  pace.optimizer_is_local = true;
  if (is_pipelined(config)) {
    pace.pipeline = {.schedule = config.pipeline_schedule,
                     .stages = config.pipeline,
                     .microbatches = microbatches_of(config),
                     .workers_a_stage = config.workers / config.pipeline,
                     .chunks = chunks_of_stage(config)};
    for (const double each : seconds_to_next(config)) pace.pipeline->to_next_ms.push_back(1e3 * each);
    if (config.shape) pace.pipeline->delay_ms = 1e3 * seconds(config.shape->delay);
  }
  pace.to_wait_less = less_waiting(config);
  if (sums_among_workers(config)) {
    pace.pairs_wait = config.gossip == Gossip::kInStep;
    if (config.gossip != Gossip::kOff || divides_model(config)) return;
    pace.lead = 0;
    pace.meets_every = config.sync_every;
  }
  if (!has_servers(config)) return;
  const ps::Consistency consistency = consistency_of(config);
  pace.optimizer_is_local = consistency.pushes_weights() || is_hybrid(config);
  pace.meets_every = consistency.period();
  pace.waits_in_forward = config.overlap_forward && may_overlap_forward(config);
  if (divides_model(config)) return;
  if (consistency.updates_together()) {
    pace.lead = 0;
    pace.quorum = consistency.pushes_an_update(config.workers, config.workers);
  } else if (consistency.waits_for_others()) {
    // A dynamic bound lets workers wait between its two; for the further one they always do.
    std::int64_t bound = 0;
    const auto& parameters = consistency.traits().parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].name.empty()) bound = std::max(bound, consistency.parameter(i));
    }
    pace.lead = bound;
  }
}

// Sets what follows each other in the exchange of a step: messages to a server and back, or along the schedule of each
// bucket, by its cost.
void set_schedule(const ResolvedRun& config, RunPace& pace) {
  if (has_servers(config)) pace.delays_a_step = 2;
  const std::optional<allreduce::ScheduleKind> kind = schedule_kind_of(config);
  const bool is_by_size = config.collective == CollectiveKind::kBySize;
  if (!sums_among_workers(config) || config.workers < 2 || !pace.link || !(kind || is_by_size)) return;
  if (divides_model(config)) return;  // a step waits for messages inside its passes besides
  const std::optional<prediction::ModelProfile> profile = profile_like(config);
  if (!profile) return;
  const allreduce::LinkModel link{.latency = pace.link->delay_ms / 1e3,
                                  .seconds_per_byte = 1 / pace.link->bytes_per_second};
  allreduce::RanksByHost hosts;
  for (int worker = 0; worker < config.workers; ++worker) hosts.push_back({worker});
  const auto costs_over = [&](const allreduce::LinkModel& over) {
    return allreduce::CostModel(hosts, allreduce::uniform_links(over), static_cast<std::size_t>(config.segment_bytes));
  };
  const allreduce::CostModel whole = costs_over(link),
                             without_delay = costs_over({.seconds_per_byte = link.seconds_per_byte});
  std::vector<double> tensors;
  for (const auto& tensor : profile->tensors) tensors.push_back(sizeof(float) * static_cast<double>(tensor.parameters));
  const double all = std::accumulate(tensors.begin(), tensors.end(), 0.0);
  double link_seconds = 0, seconds = 0;
  const double limit = config.bucket_bytes ? static_cast<double>(*config.bucket_bytes) : all;
  for (const double bucket : prediction::bucket_sizes(tensors, limit)) {
    const auto bytes = static_cast<std::size_t>(bucket);
    const allreduce::ScheduleKind taken = is_by_size ? whole.cheapest(bytes) : *kind;
    seconds += whole.seconds(taken, bytes);
    link_seconds += without_delay.seconds(taken, bytes);
  }
  const auto meets_every = static_cast<double>(pace.meets_every);
  if (!pace.compresses) pace.schedule_link_ms = 1e3 * link_seconds / meets_every;
  if (link.latency > 0) pace.delays_a_step = (seconds - link_seconds) / link.latency / meets_every;
}

// What of the bytes of processes that share a host crosses its link; a server's are the mean of all. Servers of a host
// have equal parts of the model; a ring goes from host to host once.
std::optional<RunPace::HostLink> host_link_of(const ResolvedRun& config, const std::vector<HostProcesses>& hosts) {
  if (is_hybrid(config)) return std::nullopt;
  if (sums_among_workers(config)) {
    if (schedule_kind_of(config) != allreduce::ScheduleKind::kRing || config.gossip != Gossip::kOff)
      return std::nullopt;
    return RunPace::HostLink{.of_workers = 1};
  }
  const double workers = config.workers, servers = config.servers;
  RunPace::HostLink busiest;
  const auto load = [&](const RunPace::HostLink& link) {
    return link.of_workers + link.of_servers * workers / servers;
  };
  const std::vector<double> parts = server_parts_of(config);
  for (const HostProcesses& host : hosts) {
    const double held = host.servers * (host.workers > 0 ? parts.front() : parts.back());
    const RunPace::HostLink link{.of_workers = host.workers * (1 - held),
                                 .of_servers = held * servers * (1 - host.workers / workers)};
    if (load(link) > load(busiest)) busiest = link;
  }
  return busiest;
}

// Which links processes share.
void set_hosts(const ResolvedRun& config, RunPace& pace) {
  const bool has_hosts_elsewhere = config.cluster == ClusterKind::kReal && !config.hosts.empty();
  if (has_hosts_elsewhere || !is_distributed(config)) return;
  const std::vector<HostProcesses> hosts = shared_hosts_of(config);
  if (hosts.empty()) return;
  if (config.fabric.racks > 1) pace.oversubscription = config.fabric.oversubscription;
  const auto is_shared = [](const HostProcesses& host) { return host.workers + host.servers > 1; };
  if (std::ranges::any_of(hosts, is_shared)) pace.host_link = host_link_of(config, hosts);
  pace.shares_links = pace.oversubscription || (std::ranges::any_of(hosts, is_shared) && !pace.host_link);
}

// Whether the run's own settings take this one, too, and it has an effect.
bool takes(const GivenOptions& own, const std::string& name, const std::string& value) {
  const Result<RunRequest> request = apply_options(merge({{name, value}}, own));
  return request.ok() && check_effect({{name, value}}, {presumed(*request)}).ok() && check(*request).ok();
}

// Returns the options among those that causes.cc proposes which the run would not take.
std::set<std::string> refused_by(const ResolvedRun& config) {
  Result<GivenOptions> own = given_in_file(to_toml(config));
  if (!own.ok()) return {};
  // What auto takes without --shape, and not with it.
  own->erase("transport");
  if (config.collective == CollectiveKind::kDirect) own->erase("collective");
  std::set<std::string> refused;
  for (const auto& [name, value] : {std::pair("compress", std::string("int8")),
                                    {"consistency", "bounded:4"},
                                    {"backup-workers", "1"},
                                    {"sync-every", "2"},
                                    {"microbatches", std::to_string(2 * microbatches_of(config))},
                                    {"sharding", "balanced"},
                                    {"shards-per-server", "2"},
                                    {"batch-size", std::to_string(2 * config.batch_size)},
                                    {"shape", "1gbit"}}) {
    const auto before = own->find(name);
    const bool is_so = before != own->end() && before->second == value;
    if (is_so || !takes(*own, name, value)) refused.insert(name);
  }
  return refused;
}

}  // namespace

RunPace pace_of(const ResolvedRun& config, const RunSummary& summary, std::size_t repeat) {
  const RunReport& report = summary.reports[repeat];
  RunPace pace{.what = describe(config),
               .workers = config.workers,
               .batch_size = static_cast<double>(config.batch_size),
               .warmup_steps = config.warmup_steps,
               .lost = {report.lost_workers.begin(), report.lost_workers.end()}};
  pace.compresses = compresses(config);
  set_rule(config, pace);
  if (has_servers(config)) {
    pace.servers = config.servers;
    pace.has_colocated_servers = is_colocated(config);
    if (has_spare_servers(config)) pace.server_parts = server_parts_of(config);
    pace.group = ps_group_of(config);
    pace.of_servers = report.servers;
  }
  pace.is_own_program = runs_command(config);
  pace.on_device = config.device == DeviceKind::kCuda && !pace.is_own_program;
  pace.captures_steps = pace.on_device && captures_steps(config);
  if (!pace.is_own_program) pace.refused = refused_by(config);
  pace.is_simulated = config.cluster == ClusterKind::kSimulated;
  set_hosts(config, pace);
  if (config.shape && is_distributed(config) && !pace.shares_links) {
    pace.link = PacedLink{.bytes_per_second = config.shape->payload_bytes_per_second(),
                          .delay_ms = seconds(config.shape->delay) * 1e3,
                          .rate = config.shape->describe().substr(0, config.shape->describe().find(" each way"))};
  }
  set_schedule(config, pace);
  pace.machine = report.machine;
  pace.processes = config.workers + servers_of(config) * (1 + config.replicas);
  return pace;
}

}  // namespace syncopate::experiments

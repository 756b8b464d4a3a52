#include "experiments/config/resolved_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "experiments/config/remote_shell.h"
#include "experiments/config/rules/table_rules.h"
#include "prediction/communication_cost.h"
#include "worker/data/dataset_names.h"
#include "worker/data/own/open_own.h"
#include "worker/recommender/make_recommender.h"

namespace syncopate::experiments {

using allreduce::ScheduleKind;

bool spans_hosts(const RunSettings& config) {
  if (!is_distributed(config) || config.cluster == ClusterKind::kSimulated) return false;
  return config.cluster == ClusterKind::kNamespaces || std::ranges::any_of(config.hosts, &HostSlots::remote);
}

// Workers fill the hosts in order.
bool exchanges_between_hosts(const ResolvedRun& config) {
  if (!spans_hosts(config)) return false;
  return !runs_command(config) || config.hosts.empty() || config.workers > config.hosts.front().slots;
}

std::size_t own_hosts_of(const ResolvedRun& config) {
  if (!config.hosts.empty()) return config.hosts.size();
  return static_cast<std::size_t>(config.workers + server_processes_of(config));
}

std::vector<HostSlots> hosts_of(const ResolvedRun& config) {
  if (is_distributed(config) && !config.hosts.empty()) return config.hosts;
  if (spans_hosts(config)) return numbered_hosts(own_hosts_of(config), 1);
  return {{.name = "localhost", .slots = config.workers}};
}

std::vector<HostProcesses> shared_hosts_of(const ResolvedRun& config) {
  if (config.hosts.empty() && !is_colocated(config)) return {};
  const int servers = separate_servers_of(config);
  if (!config.hosts.empty()) return processes_by_host(config.hosts, config.workers, servers, is_colocated(config));
  std::vector<HostProcesses> processes(static_cast<std::size_t>(config.workers), {.workers = 1, .servers = 1});
  processes.resize(processes.size() + static_cast<std::size_t>(servers), {.workers = 0, .servers = 1});
  return processes;
}

std::vector<HostProcesses> processes_by_link(const ResolvedRun& config) {
  const bool have_links = config.cluster != ClusterKind::kReal || spans_hosts(config) || config.hosts.empty();
  std::vector<HostProcesses> links = have_links ? shared_hosts_of(config) : std::vector<HostProcesses>();
  if (!links.empty()) return links;
  links.assign(static_cast<std::size_t>(config.workers), {.workers = 1, .servers = is_colocated(config) ? 1 : 0});
  links.resize(links.size() + static_cast<std::size_t>(separate_servers_of(config)), {.workers = 0, .servers = 1});
  return links;
}

std::vector<double> server_parts_of(const ResolvedRun& config) {
  const auto servers = static_cast<std::size_t>(config.servers);
  if (!has_spare_servers(config)) return std::vector<double>(servers, 1.0 / config.servers);
  const std::vector<HostProcesses> links = processes_by_link(config);
  const auto hosts = std::ranges::count_if(links, [](const HostProcesses& host) { return host.workers > 0; });
  const prediction::BytepsParts parts = prediction::byteps_parts(static_cast<int>(hosts), config.spare_servers);
  std::vector<double> of_servers(servers, parts.on_server_host);
  std::fill_n(of_servers.begin(), config.workers, parts.on_worker_host * static_cast<double>(hosts) / config.workers);
  return of_servers;
}

std::optional<LinkShape> emulated_link_of(const ResolvedRun& config) {
  if (config.cluster == ClusterKind::kReal) return config.shape;
  if (config.cluster == ClusterKind::kSimulated || !config.shape) return std::nullopt;
  if (config.shape->delay == Duration::zero()) return std::nullopt;
  return LinkShape{.bits_per_second = 0, .delay = config.shape->delay};
}

bool is_staged(const ResolvedRun& config) {
  if (config.device != DeviceKind::kCuda || !is_distributed(config)) return false;
  return has_servers(config) || !is_nccl(config.collective);
}

bool may_capture_steps(const ResolvedRun& config) { return config.device == DeviceKind::kCuda && !is_staged(config); }

bool captures_steps(const ResolvedRun& config) { return may_capture_steps(config) && config.cuda_graphs; }

bool has_own_collective(const ResolvedRun& config) {
  return sums_among_workers(config) && config.collective != CollectiveKind::kMpi && !is_nccl(config.collective);
}

std::optional<ScheduleKind> schedule_kind_of(const ResolvedRun& config) {
  const Result<ScheduleKind> kind = allreduce::parse_schedule_kind(name_of(config.collective));
  return kind.ok() ? std::optional(*kind) : std::nullopt;
}

bool sums_on_two_levels(const ResolvedRun& config) {
  return sums_among_workers(config) && config.collective == CollectiveKind::kHierarchical && spans_hosts(config);
}

bool aggregates_on_hosts(const ResolvedRun& config) {
  return has_servers_alone(config) && config.aggregation == Aggregation::kHost;
}

bool sums_inside_hosts(const ResolvedRun& config) { return sums_on_two_levels(config) || aggregates_on_hosts(config); }

std::int64_t workers_of_largest_host(const ResolvedRun& config) {
  if (config.cluster == ClusterKind::kSimulated && config.hosts.empty()) return 1;
  std::vector<std::int64_t> workers(hosts_of(config).size());
  for (const std::size_t host : hosts_of_workers(hosts_of(config), config.workers)) ++workers[host];
  return std::ranges::max(workers);
}

bool may_sum_on_two_levels(const ResolvedRun& config) {
  if (sums_on_two_levels(config)) return true;
  const bool may_choose = sums_among_workers(config) && config.collective == CollectiveKind::kBySize;
  return may_choose && spans_hosts(config) && workers_of_largest_host(config) > 1 &&
         workers_of_largest_host(config) < config.workers;
}

const char* transport_that_runs(const ResolvedRun& config) {
  if (config.cluster == ClusterKind::kSimulated && is_distributed(config)) return "a simulated wire";
  if (!is_distributed(config)) return "none";
  if (sums_among_workers(config) && !has_own_collective(config)) return name_of(config.collective);
  if (!sums_inside_hosts(config)) return name_of(config.transport);
  const bool is_tcp = config.transport == TransportKind::kTcp;
  if (has_servers(config))
    return is_tcp ? "shm inside a host, tcp to servers" : "shm inside a host, sockets to servers";
  return is_tcp ? "shm inside a host, tcp between hosts" : "shm inside a host, sockets between hosts";
}

bool generates_data(const RunSettings& config) {
  const worker::DatasetTraits* const traits = worker::find_dataset(config.dataset);
  return traits != nullptr && traits->is_generated;
}

bool draws_data(const RunSettings& config) {
  const worker::DatasetTraits* const traits = worker::find_dataset(config.dataset);
  return traits != nullptr ? traits->is_drawn : has_own_data(config);
}

bool has_crops(const RunSettings& config) { return config.dataset == "cifar10"; }

bool has_own_data(const RunSettings& config) { return worker::is_own_data(config.dataset); }

worker::OwnOptions own_options_of(const RunSettings& config) {
  return {.target = config.target.value_or(""),
          .ignore = config.ignore.value_or(""),
          .test_data = config.test_data.value_or(""),
          .test_fraction = config.test_fraction,
          .task = config.task,
          .normalisation = config.normalise,
          .image_size = config.image_size.value_or(0)};
}

bool learns_images(const RunSettings& config) {
  const worker::DatasetTraits* const traits = worker::find_dataset(config.dataset);
  return !is_profile(config) && (traits != nullptr ? worker::has_images(*traits) : has_own_data(config));
}

bool shards_by_label(const RunSettings& config) {
  return is_distributed(config) && learns_images(config) && config.shard == DataShard::kLabels;
}

bool learns_ink(const RunSettings& config) {
  const worker::DatasetTraits* const traits = worker::find_dataset(config.dataset);
  return !is_profile(config) && traits != nullptr && traits->kind == worker::SampleKind::kInk;
}

worker::Shuffle shuffle_of(const RunSettings& config) {
  const bool deals_out = config.shuffle == worker::Shuffle::kOff || is_distributed(config);
  return deals_out ? config.shuffle : worker::Shuffle::kGlobal;
}

bool has_samples_of_its_own(const RunSettings& config) {
  const worker::Shuffle shuffle = shuffle_of(config);
  return shards_by_label(config) || shuffle == worker::Shuffle::kShard || shuffle == worker::Shuffle::kWorker;
}

bool learns_text(const RunSettings& config) {
  const worker::DatasetTraits* const traits = worker::find_dataset(config.dataset);
  return traits != nullptr && traits->kind == worker::SampleKind::kText;
}

bool learns_grammar(const RunSettings& config) { return config.dataset == "grammar"; }

bool learns_patterns(const RunSettings& config) { return config.dataset == "patterns"; }

bool may_hold_out(const RunSettings& config) {
  return learns_images(config) || (learns_text(config) && !is_profile(config));
}

bool is_profile(const RunSettings& config) { return config.model.starts_with(kProfilePrefix); }

bool times_are_certain(const ResolvedRun& config) {
  return config.cluster == ClusterKind::kSimulated && is_profile(config) && !config.stragglers.draws() &&
         config.sample_costs.are_equal() && config.gossip == Gossip::kOff &&
         config.processing.source != ProcessingModel::Source::kSolo;
}

std::string command_of(const RunSettings& config) {
  std::string line;
  for (const std::string& word : config.command) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

std::string model_on_data(const RunSettings& config) {
  if (runs_command(config)) return command_of(config);
  return is_profile(config) ? config.model : fmt::format("{} on {}", config.model, config.dataset);
}

std::string dataset_spec(const RunSettings& config) {
  std::vector<std::int64_t> numbers;
  if (generates_data(config)) numbers = {config.train_samples, config.test_samples};
  if (learns_text(config)) numbers.push_back(config.context);
  if (learns_grammar(config)) numbers.push_back(config.vocabulary);
  if (learns_patterns(config)) {
    numbers.push_back(config.image_size.value_or(worker::kUsualPatternSide));
    numbers.push_back(config.classes);
  }
  if (sizes_tables(config)) numbers.push_back(config.table_rows);
  if (has_crops(config) && !config.augment) return config.dataset + ":plain";
  const bool is_unit = learns_ink(config) && config.pixel_scale == worker::PixelScale::kUnit;
  return config.dataset + (numbers.empty() ? "" : fmt::format(":{}", fmt::join(numbers, "-"))) +
         (is_unit ? std::string(worker::kUnitSuffix) : "");
}

std::string model_spec(const RunSettings& config) {
  const bool is_dense = is_recommender(config) && config.embeddings == worker::EmbeddingKind::kDense;
  if (is_dense) return config.model + std::string(worker::kDenseSuffix);
  if (!learns_images(config) || config.init == worker::WeightInit::kByLayer) return config.model;
  return fmt::format("{}{}{}", config.model, worker::kInitSuffix, name_of(config.init));
}

OptimizerConfig optimizer_of(const ResolvedRun& config) {
  if (config.script != nullptr) return config.script->update;
  OptimizerConfig optimizer;
  const OptimizerTraits& traits = traits_of(config.optimizer);
  optimizer.kind = corrects_momentum(config) ? OptimizerKind::kSgd : traits.kind;
  optimizer.nesterov = traits.nesterov;
  optimizer.momentum = static_cast<float>(config.momentum);
  optimizer.beta1 = static_cast<float>(config.beta1);
  optimizer.beta2 = static_cast<float>(config.beta2);
  optimizer.trust_coefficient = static_cast<float>(config.trust_coefficient);
  optimizer.rho = static_cast<float>(config.rho);
  optimizer.epsilon = static_cast<float>(config.epsilon);
  optimizer.weight_decay = static_cast<float>(config.weight_decay);
  optimizer.decay_all = config.decay_all;
  optimizer.frozen_after = config.adam_freeze_variance.value_or(0);
  optimizer.takes_momentum = is_one_bit_adam(config);
  optimizer.initial_accumulator = static_cast<float>(config.initial_accumulator);
  optimizer.l1 = static_cast<float>(config.l1);
  optimizer.l2 = static_cast<float>(config.l2);
  optimizer.beta = static_cast<float>(config.ftrl_beta);
  return optimizer;
}

ps::PsGroup ps_group_of(const ResolvedRun& config, int stage) {
  ps::PsGroup group{.workers = config.workers,
                    .servers = config.servers,
                    .shards_per_server = config.shards_per_server,
                    .replicas = config.replicas,
                    .parts = stages_of(config),
                    .part = stage};
  if (!has_spare_servers(config)) return group;
  const std::vector<double> parts = server_parts_of(config);
  constexpr double kRounding = 1e-9;
  const double shards = std::ceil(config.shards_per_server * parts.back() / parts.front() - kRounding);
  group.spare_servers = config.spare_servers;
  group.shards_per_spare = static_cast<int>(std::clamp<double>(shards, 1, ps::kMostShardsPerServer));
  return group;
}

std::size_t shards_of(const ResolvedRun& config) { return static_cast<std::size_t>(ps_group_of(config).all_shards()); }

ps::Sharding sharding_of(const ResolvedRun& config) {
  if (config.script != nullptr && is_layerwise(config.script->update.kind)) return ps::kWholeTensors;
  const bool whole_tensors = goes_by_layer(traits_of(config.optimizer));
  ps::Sharding sharding{.policy = config.sharding,
                        .chunk_bytes = whole_tensors ? ps::kUncut : static_cast<std::size_t>(config.chunk_bytes)};
  if (!has_spare_servers(config)) return sharding;
  const ps::PsGroup group = ps_group_of(config);
  const std::vector<double> parts = server_parts_of(config);
  for (int shard = 0; shard < group.shards(); ++shard) {
    const int server = group.server_of_shard(shard);
    sharding.parts.push_back(parts[static_cast<std::size_t>(server)] / group.shards_of_server(server));
  }
  return sharding;
}

namespace {

int parts_of_layers(const ResolvedRun& config) { return splits_layers(config) ? config.tensor : 1; }
int workers_of_replica(const ResolvedRun& config) { return stages_of(config) * parts_of_layers(config); }

}  // namespace

int model_replicas(const ResolvedRun& config) { return config.workers / workers_of_replica(config); }

ModelPlace model_place(const ResolvedRun& config, int rank) {
  const int parts = parts_of_layers(config), replicas = model_replicas(config);
  return {.stage = rank / (replicas * parts), .part = rank % parts, .replica = rank / parts % replicas};
}

int worker_at(const ResolvedRun& config, const ModelPlace& place) {
  return (place.stage * model_replicas(config) + place.replica) * parts_of_layers(config) + place.part;
}

int replica_batch(const ResolvedRun& config) { return config.batch_size * workers_of_replica(config); }

int microbatch_samples(const ResolvedRun& config) { return replica_batch(config) / microbatches_of(config); }

bool sums_among_replicas(const RunSettings& config) { return sums_among_workers(config) && replicates_state(config); }

bool averages_weights(const RunSettings& config) {
  return sums_among_replicas(config) && (config.sync_every > 1 || config.gossip != Gossip::kOff);
}

allreduce::OuterOptions outer_options_of(const ResolvedRun& config) {
  if (!meets_all(config)) return {};
  allreduce::OuterOptions options{.codec = codec_of(config),
                                  .seed = config.seed,
                                  .fragments = config.sync_fragments,
                                  .overlap = config.sync_overlap};
  if (config.outer_momentum > 0) {
    options.momentum = {.momentum = static_cast<float>(config.outer_momentum),
                        .rate = config.outer_rate,
                        .nesterov = config.outer_nesterov};
  }
  return options;
}

bool sums_gradients(const RunSettings& config) { return sums_among_replicas(config) && !averages_weights(config); }

bool meets_all(const RunSettings& config) { return averages_weights(config) && config.gossip == Gossip::kOff; }

std::string averaging_of(const RunSettings& config) {
  const char* how = config.gossip == Gossip::kAsync    ? "gossip-async"
                    : config.gossip == Gossip::kInStep ? "gossip"
                                                       : "sync-every";
  return fmt::format("{}:{}", how, config.sync_every);
}

bool compresses(const RunSettings& config) { return config.compress.kind != CodecKind::kNone; }

bool may_compress(const ResolvedRun& config) {
  if (has_servers_alone(config)) return !config.consistency.pushes_weights();
  return (sums_gradients(config) || meets_all(config)) && !is_nccl(config.collective);
}

CodecConfig codec_of(const ResolvedRun& config) {
  if (!may_compress(config)) return {};
  CodecConfig codec = config.compress;
  if (codec.kind == CodecKind::kInt8) codec.rounding = config.int8_rounding;
  if (is_one_bit_adam(config)) codec.whole_updates = *config.adam_freeze_variance;
  if (codec.kind == CodecKind::kTopK || codec.kind == CodecKind::kTopK2Bit) {
    codec.decay = static_cast<float>(config.compress_decay);
  }
  if (codec.kind != CodecKind::kTopK) return codec;
  codec.warmup_epochs = config.compress_warmup;
  if (!corrects_momentum(config)) return codec;
  codec.momentum = {.how = config.compress_momentum,
                    .momentum = static_cast<float>(config.momentum),
                    .nesterov = traits_of(config.optimizer).nesterov};
  return codec;
}

bool may_correct_momentum(const ResolvedRun& config) {
  return may_compress(config) && !averages_weights(config) && config.compress.kind == CodecKind::kTopK &&
         has_momentum(traits_of(config.optimizer));
}
bool corrects_momentum(const ResolvedRun& config) {
  return may_correct_momentum(config) && config.compress_momentum != CompressMomentum::kOff;
}

bool is_one_bit_adam(const ResolvedRun& config) {
  return has_moments(traits_of(config.optimizer)) && config.adam_freeze_variance && may_compress(config) &&
         !averages_weights(config) && compresses(config);
}

ps::Compression compression_of(const ResolvedRun& config) {
  if (!has_servers(config) || !may_compress(config)) return {};
  return {.codec = codec_of(config), .answers = config.compress_answers, .seed = config.seed};
}

std::int64_t total_steps_of(const RunSettings& config, std::int64_t steps_per_epoch) {
  return config.steps.value_or(config.epochs * steps_per_epoch);
}

Duration longest_delay(const RunSettings& config) { return from_seconds(config.timeout_seconds / 2); }

worker::StragglingOptions straggling_of(const ResolvedRun& config, int rank) {
  return {.stragglers = config.stragglers,
          .seed = config.seed,
          .worker = rank,
          .by_cost = !config.sample_costs.are_equal() && config.cluster != ClusterKind::kSimulated,
          .longest = longest_delay(config)};
}

bool is_slowed(const ResolvedRun& config, int rank) {
  return config.stragglers.slows(rank) || straggling_of(config, rank).by_cost;
}

Duration stall_warning_of(const ResolvedRun& config) { return from_seconds(config.stall_warning_seconds); }

bool may_report_stalls(const ResolvedRun& config) {
  return sums_among_workers(config) && !is_nccl(config.collective) && config.gossip == Gossip::kOff &&
         !divides_model(config) && !gathers_on_demand(config);
}

// The weights that a worker keeps for compensation are those of its last response.
bool may_run_ahead(const RunSettings& config) {
  return has_servers_alone(config) && config.consistency.traits().pipeline && config.delay_compensation.lambda == 0;
}

bool may_overlap_forward(const ResolvedRun& config) {
  const bool runs_ahead = may_run_ahead(config) && config.pipeline_depth > 0;
  return has_servers_alone(config) && config.device != DeviceKind::kCuda && !config.consistency.pushes_weights() &&
         !runs_ahead;
}

// If a push is answered only after other workers' pushes, all must push in the same order.
bool may_order_pushes(const ResolvedRun& config) {
  return may_overlap_forward(config) && config.overlap_forward && config.consistency.traits().pipeline;
}

bool goes_at_own_pace(const RunSettings& config) {
  return gossips_asynchronously(config) || (has_servers_alone(config) && config.consistency.traits().shares_work());
}

bool may_share_work(const RunSettings& config) {
  return goes_at_own_pace(config) && !has_samples_of_its_own(config) && !runs_command(config) && !is_pipelined(config);
}

bool shares_work(const RunSettings& config) { return may_share_work(config) && config.work == WorkDivision::kShared; }

int batches_a_step(const ResolvedRun& config) {
  return has_servers_alone(config) ? config.workers - consistency_of(config).backup_workers() : config.workers;
}

ps::Consistency consistency_of(const RunSettings& config) {
  const ps::ConsistencyTraits& traits = config.consistency.traits();
  return config.consistency.with_backup_workers(traits.backup_workers ? config.backup_workers : 0)
      .with_quorum(traits.quorum ? config.quorum : ps::Quorum());
}

ps::StalenessOptions staleness_of(const ResolvedRun& config) {
  if (!config.consistency.applies_stale_gradients()) return {};
  const bool has_momentum = optimizer_of(config).kind == OptimizerKind::kMomentum;
  return {.divide_rate = config.staleness_lr == StalenessRate::kDivide,
          .compensation = config.delay_compensation,
          .correct_momentum = config.momentum_correction && has_momentum};
}

TraceSteps traced_steps_of(const ResolvedRun& config) {
  return config.trace->steps_in(0, std::numeric_limits<std::int64_t>::max(), config.warmup_steps);
}

std::size_t trace_capacity_of(const ResolvedRun& config) {
  constexpr std::size_t kOfAll = 1000000, kLeast = 500, kMost = 131072;
  const int processes = config.workers + servers_of(config) * (1 + config.replicas);
  return std::clamp(kOfAll / static_cast<std::size_t>(processes), kLeast, kMost);
}

TracePlan trace_plan_of(const ResolvedRun& config) {
  const bool pushes_weights = has_servers(config) && config.consistency.pushes_weights();
  return {.steps = traced_steps_of(config),
          .capacity = trace_capacity_of(config),
          .steps_a_push = pushes_weights ? config.consistency.period() : 1};
}

}  // namespace syncopate::experiments

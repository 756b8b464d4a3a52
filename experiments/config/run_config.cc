#include "experiments/config/run_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "experiments/config/checkpoint_rules.h"
#include "experiments/config/fault_rules.h"
#include "experiments/config/survival_rules.h"
#include "experiments/config/table_rules.h"
#include "worker/recommender/make_recommender.h"

namespace syncopate::experiments {
namespace {

using allreduce::ScheduleKind;

Status wrong(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

int workers_of(const RunConfig& config) {
  if (config.workers > 0) return config.workers;
  if (config.mode == Mode::kLocal) return 1;
  return config.hosts.empty() ? 2 : total_slots(config.hosts);
}

bool sums_in_nccl(const RunConfig& config) {
  const bool by_default = config.collective == CollectiveKind::kAuto && config.device == DeviceKind::kCuda &&
                          !config.shape && !compresses(config);
  return config.mode == Mode::kAllreduce && !averages_weights(config) &&
         (by_default || config.collective == CollectiveKind::kNccl);
}

Status validate_job(const RunConfig& config) {
  if (config.mode == Mode::kLocal && workers_of(config) > 1) {
    return wrong(fmt::format("--workers={}: --mode=local trains in one process; use --mode=ps or --mode=allreduce",
                             config.workers));
  }
  if (config.mode == Mode::kLocal && config.launcher != LauncherKind::kLocal) {
    return wrong(fmt::format("--launcher={}: --mode=local has no processes to spread; leave --launcher out",
                             name_of(config.launcher)));
  }
  if (config.mode == Mode::kAllreduce && config.collective == CollectiveKind::kMpi &&
      config.launcher != LauncherKind::kMpirun) {
    return wrong("--collective=mpi needs --launcher=mpirun: Open MPI connects only the processes that it has started");
  }
  if (averages_weights(config) && config.collective == CollectiveKind::kNccl) {
    return wrong(
        "--collective=nccl: sums gradients alone; with --sync-every and --gossip weights are averaged in the "
        "host's memory, by --collective=ring or mpi");
  }
  if (sums_in_nccl(config) && config.bucket_bytes == 0) {
    return wrong(
        "--bucket-bytes=auto: searches among buckets that the host sends, not for NCCL's; give a size, as in "
        "--bucket-bytes=1048576, or --collective=ring");
  }
  if (config.mode == Mode::kAllreduce && config.collective == CollectiveKind::kNccl &&
      config.device == DeviceKind::kCpu) {
    return wrong("--collective=nccl needs --device=cuda: NCCL sums on GPUs alone; on the CPU use ring or mpi");
  }
  return {};
}

Status validate_hosts(const RunConfig& config) {
  if (config.hosts.empty() || config.mode == Mode::kLocal) return {};
  const int slots = total_slots(config.hosts);
  if (workers_of(config) > slots) {
    return wrong(fmt::format("--workers={}: --hosts={} has {} slot{}; use --workers={}, or give hosts more slots",
                             workers_of(config), to_text(config.hosts), slots, slots == 1 ? "" : "s", slots));
  }
  if (!spans_hosts(config)) return {};
  if (config.transport == TransportKind::kShm || config.transport == TransportKind::kIpc) {
    return wrong(
        fmt::format("--transport={}: connects processes of one host, and --hosts={} names others; use tcp or sockets",
                    name_of(config.transport), to_text(config.hosts)));
  }
  const auto names_a_user = [](const HostSlots& host) { return host.name.find('@') != std::string::npos; };
  if (config.launcher == LauncherKind::kMpirun && std::ranges::any_of(config.hosts, names_a_user)) {
    return wrong(
        fmt::format("--hosts={}: mpirun takes hosts without a user; name the user in the remote shell's "
                    "configuration, or in --remote-shell",
                    to_text(config.hosts)));
  }
  return {};
}

// What can be shaped are messages over a transport of ours, whose stamps are of one host's clock.
Status validate_shape(const RunConfig& config) {
  if (!config.shape || config.mode == Mode::kLocal) return {};
  const std::string shape = config.shape->to_string();
  if (spans_hosts(config)) {
    return wrong(
        fmt::format("--shape={}: emulates a network on one host, and --hosts={} names others; shape their own "
                    "links, or leave --hosts out",
                    shape, to_text(config.hosts)));
  }
  if (config.mode != Mode::kAllreduce) return {};
  if (config.collective == CollectiveKind::kMpi || config.collective == CollectiveKind::kNccl) {
    return wrong(
        fmt::format("--shape={}: --collective={} has wires of its own, which cannot be shaped; use ring, or "
                    "another of our schedules",
                    shape, name_of(config.collective)));
  }
  const bool in_memory = config.transport == TransportKind::kAuto || config.transport == TransportKind::kShm;
  if (config.collective == CollectiveKind::kDirect && in_memory) {
    return wrong(
        fmt::format("--shape={}: --collective=direct sends nothing in shared memory, where ranks read each "
                    "other's buffers; use auto or ring, or direct with --transport=sockets",
                    shape));
  }
  return {};
}

Status validate_consistency(const RunConfig& config) {
  if (config.mode != Mode::kPs) return {};
  const ps::Consistency& consistency = config.consistency;
  const int workers = workers_of(config);
  if (consistency.kind() == ps::Consistency::Kind::kSync && config.backup_workers >= workers) {
    return wrong(
        fmt::format("--backup-workers={}: must be fewer than the {} worker{}, of whom an update needs the others",
                    config.backup_workers, workers, workers == 1 ? "" : "s"));
  }
  if (consistency.kind() == ps::Consistency::Kind::kSoftSync && consistency.bound() > workers) {
    return wrong(fmt::format("--consistency={}: n must be 1 to {}, the workers; with as many it is async",
                             consistency.to_string(), workers));
  }
  return {};
}

Status validate_compression(const RunConfig& config) {
  const ps::Compression compression = compression_of(config);
  if (compression.codec.kind == CodecKind::kPowerSgd) {
    return wrong(
        fmt::format("--compress={}: works by sums over all workers, which parameter servers have no rounds for; "
                    "use --mode=allreduce, or another codec",
                    to_string(config.compress)));
  }
  if (compression.of_answers() && staleness_of(config).compensation.enabled()) {
    return wrong(
        fmt::format("--delay-compensation={}: needs to know the weights that a worker has, of which it is sent "
                    "compressed differences; add --compress-answers=off",
                    config.delay_compensation.to_string()));
  }
  return {};
}

Status validate_batches(const RunConfig& config) {
  const std::int64_t workers = workers_of(config);
  if (config.global_batch_size % workers != 0) {
    return wrong(fmt::format("--global-batch-size={}: must be a multiple of the {} workers; {} would be",
                             config.global_batch_size, workers,
                             std::max<std::int64_t>(1, config.global_batch_size / workers) * workers));
  }
  const std::int64_t global = config.global_batch_size > 0 ? config.global_batch_size : config.batch_size * workers;
  if (generates_data(config) && config.train_samples < global) {
    return wrong(fmt::format("--train-samples={}: must hold one batch of all workers together, here {} samples",
                             config.train_samples, global));
  }
  if (config.steps > 0 && config.steps <= config.warmup_steps) {
    return wrong(fmt::format("--steps={}: leaves nothing to measure after --warmup-steps={}; must be {} or more",
                             config.steps, config.warmup_steps, config.warmup_steps + 1));
  }
  return {};
}

Duration longest_delay(const RunConfig& config) { return from_seconds(config.timeout_seconds / 2); }

Status validate_stragglers(const RunConfig& config) {
  return config.stragglers.check(workers_of(config), longest_delay(config))
      .in("--straggler=" + config.stragglers.to_string());
}

Status validate_stall_warning(const RunConfig& config) {
  if (!may_report_stalls(config) || config.stall_warning_seconds < config.timeout_seconds) return {};
  return wrong(fmt::format("--stall-warning={}: must be less than --timeout={}, which ends the run",
                           config.stall_warning_seconds, config.timeout_seconds));
}

Status validate_schedule(const RunConfig& config) {
  const Result<LearningRateSchedule> schedule = LearningRateSchedule::parse(config.lr_schedule);
  return schedule.ok() ? Status() : schedule.status().in("--lr-schedule=" + config.lr_schedule);
}

// A weight of ftrl's is a function of all gradients so far and of one rate: another rate would change it at once.
Status validate_ftrl(const RunConfig& config) {
  if (config.optimizer != "ftrl") return {};
  const LearningRateSchedule schedule = schedule_of(config);
  if (schedule.shape != LearningRateSchedule::Shape::kConstant || schedule.warmup_epochs > 0) {
    return wrong(fmt::format("--lr-schedule={}: must be constant, or constant,linear, with --optimizer=ftrl",
                             config.lr_schedule));
  }
  if (config.mode == Mode::kPs && config.staleness_lr == StalenessRate::kDivide) {
    return wrong("--staleness-lr=divide: must be keep with --optimizer=ftrl, whose rate stays the same");
  }
  return {};
}

}  // namespace

const char* name_of(Mode value) {
  switch (value) {
    case Mode::kLocal:
      return "local";
    case Mode::kPs:
      return "ps";
    case Mode::kAllreduce:
      return "allreduce";
  }
  return "";
}

const char* name_of(DeviceKind value) {
  switch (value) {
    case DeviceKind::kAuto:
      return "auto";
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
  }
  return "";
}

const char* name_of(CollectiveKind value) {
  switch (value) {
    case CollectiveKind::kAuto:
      return "auto";
    case CollectiveKind::kDirect:
      return name_of(ScheduleKind::kDirect);
    case CollectiveKind::kRing:
      return name_of(ScheduleKind::kRing);
    case CollectiveKind::kHalvingDoubling:
      return name_of(ScheduleKind::kHalvingDoubling);
    case CollectiveKind::kDoubling:
      return name_of(ScheduleKind::kDoubling);
    case CollectiveKind::kTree:
      return name_of(ScheduleKind::kTree);
    case CollectiveKind::kBinomialTree:
      return name_of(ScheduleKind::kBinomialTree);
    case CollectiveKind::kHierarchical:
      return name_of(ScheduleKind::kHierarchical);
    case CollectiveKind::kMpi:
      return "mpi";
    case CollectiveKind::kNccl:
      return "nccl";
  }
  return "";
}

const char* name_of(TransportKind value) {
  switch (value) {
    case TransportKind::kAuto:
      return "auto";
    case TransportKind::kShm:
      return "shm";
    case TransportKind::kIpc:
      return "ipc";
    case TransportKind::kTcp:
      return "tcp";
    case TransportKind::kSockets:
      return "sockets";
  }
  return "";
}

const char* name_of(LauncherKind value) { return value == LauncherKind::kLocal ? "local" : "mpirun"; }
const char* name_of(BackendKind value) { return value == BackendKind::kOneDnn ? "onednn" : "reference"; }

const char* name_of(worker::EmbeddingKind value) {
  return value == worker::EmbeddingKind::kSparse ? "sparse" : "dense";
}

const char* name_of(StalenessRate value) { return value == StalenessRate::kKeep ? "keep" : "divide"; }

double usual_learning_rate(const std::string& optimizer) {
  if (optimizer == "sgd") return 0.1;
  if (optimizer == "momentum" || optimizer == "nesterov") return 0.01;
  if (optimizer == "adagrad") return 0.01;
  if (optimizer == "ftrl") return 0.1;
  return 0.001;  // adam, adamw (Kingma and Ba 2015, section 2)
}

double usual_stall_warning_seconds(double timeout_seconds) { return std::min(5.0, timeout_seconds / 4); }

std::int64_t usual_chunk_bytes(TransportKind transport) {
  return transport == TransportKind::kShm ? 256 * 1024 : 1024 * 1024;
}

RunConfig resolve(RunConfig config, const std::string& stamp) {
  config.workers = workers_of(config);
  if (config.learning_rate == 0) config.learning_rate = usual_learning_rate(config.optimizer);
  if (config.global_batch_size > 0) config.batch_size = static_cast<int>(config.global_batch_size / config.workers);
  const bool is_easgd = config.consistency.kind() == ps::Consistency::Kind::kEasgd;
  // Zhang, Choromanska and LeCun 2015: beta = 0.9 is the center's share of all workers together.
  if (is_easgd && config.elastic_alpha == 0) config.elastic_alpha = 0.9 / config.workers;
  if (config.transport == TransportKind::kAuto) {
    const TransportKind between_hosts = config.mode == Mode::kPs ? TransportKind::kTcp : TransportKind::kSockets;
    config.transport = spans_hosts(config) ? between_hosts : TransportKind::kShm;
  }
  if (config.chunk_bytes == 0) config.chunk_bytes = usual_chunk_bytes(config.transport);
  if (config.collective == CollectiveKind::kAuto) {
    if (sums_in_nccl(config)) {
      config.collective = CollectiveKind::kNccl;
    } else if (config.transport == TransportKind::kShm && !config.shape) {
      config.collective = CollectiveKind::kDirect;
    }
  }
  if (config.stall_warning_seconds < 0) {
    config.stall_warning_seconds = usual_stall_warning_seconds(config.timeout_seconds);
  }
  if (config.output.empty()) {
    config.output = fmt::format("results/{}-{}", stamp, name_of(config.mode));
    if (config.mode == Mode::kPs) {
      std::string consistency = config.consistency.to_string();
      for (char& letter : consistency) letter = letter == ':' ? '-' : letter;
      config.output += "-" + consistency;
    }
    if (config.mode == Mode::kAllreduce) config.output += fmt::format("-{}", name_of(config.collective));
    if (may_compress(config) && compresses(config)) {
      std::string codec = to_string(config.compress);
      std::ranges::replace(codec, ':', '-');
      config.output += "-" + codec;
    }
    if (averages_weights(config)) {
      config.output += fmt::format("-{}-{}", config.gossip ? "gossip" : "sync-every", config.sync_every);
    }
  }
  return config;
}

Status validate(const RunConfig& config) {
  SYNCOPATE_RETURN_IF_ERROR(validate_job(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_hosts(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_shape(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_consistency(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_compression(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_batches(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_tables(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_checkpoints(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_survival(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_stragglers(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_stall_warning(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_schedule(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_ftrl(config));
  return validate_faults(config, config.steps);
}

bool spans_hosts(const RunConfig& config) {
  return config.mode != Mode::kLocal && std::ranges::any_of(config.hosts, &HostSlots::remote);
}

std::vector<HostSlots> hosts_of(const RunConfig& config) {
  if (config.mode == Mode::kLocal || config.hosts.empty()) return {{.name = "localhost", .slots = config.workers}};
  return config.hosts;
}

bool is_staged(const RunConfig& config) {
  if (config.device != DeviceKind::kCuda || config.mode == Mode::kLocal) return false;
  return config.mode == Mode::kPs || config.collective != CollectiveKind::kNccl;
}

bool has_own_collective(const RunConfig& config) {
  return config.mode == Mode::kAllreduce && config.collective != CollectiveKind::kMpi &&
         config.collective != CollectiveKind::kNccl;
}

std::optional<ScheduleKind> schedule_kind_of(const RunConfig& config) {
  const Result<ScheduleKind> kind = allreduce::parse_schedule_kind(name_of(config.collective));
  return kind.ok() ? std::optional(*kind) : std::nullopt;
}

const char* transport_that_runs(const RunConfig& config) {
  if (config.mode == Mode::kLocal) return "none";
  if (config.mode == Mode::kAllreduce && !has_own_collective(config)) return name_of(config.collective);
  return name_of(config.transport);
}

bool generates_data(const RunConfig& config) {
  return config.dataset == "digits" || config.dataset == "grammar" || config.dataset == "zipf-ratings" ||
         config.dataset == "zipf-clicks";
}

bool learns_text(const RunConfig& config) { return config.dataset == "text" || config.dataset == "grammar"; }

std::string dataset_spec(const RunConfig& config) {
  std::vector<std::int64_t> numbers;
  if (generates_data(config)) numbers = {config.train_samples, config.test_samples};
  if (learns_text(config)) numbers.push_back(config.context);
  if (sizes_tables(config)) numbers.push_back(config.table_rows);
  return config.dataset + (numbers.empty() ? "" : fmt::format(":{}", fmt::join(numbers, "-")));
}

std::string model_spec(const RunConfig& config) {
  const bool is_dense = is_recommender(config) && config.embeddings == worker::EmbeddingKind::kDense;
  return is_dense ? config.model + std::string(worker::kDenseSuffix) : config.model;
}

OptimizerConfig optimizer_of(const RunConfig& config) {
  OptimizerConfig optimizer;
  if (config.optimizer == "sgd") {
    optimizer.kind = OptimizerKind::kSgd;
  } else if (config.optimizer == "adam") {
    optimizer.kind = OptimizerKind::kAdam;
  } else if (config.optimizer == "adamw") {
    optimizer.kind = OptimizerKind::kAdamW;
  } else if (config.optimizer == "adagrad") {
    optimizer.kind = OptimizerKind::kAdagrad;
  } else if (config.optimizer == "ftrl") {
    optimizer.kind = OptimizerKind::kFtrl;
  } else {
    assert(config.optimizer == "momentum" || config.optimizer == "nesterov");
    optimizer.kind = OptimizerKind::kMomentum;
    optimizer.nesterov = config.optimizer == "nesterov";
  }
  optimizer.momentum = static_cast<float>(config.momentum);
  optimizer.beta1 = static_cast<float>(config.beta1);
  optimizer.beta2 = static_cast<float>(config.beta2);
  optimizer.epsilon = static_cast<float>(config.epsilon);
  optimizer.weight_decay = static_cast<float>(config.weight_decay);
  optimizer.initial_accumulator = static_cast<float>(config.initial_accumulator);
  optimizer.l1 = static_cast<float>(config.l1);
  optimizer.l2 = static_cast<float>(config.l2);
  optimizer.beta = static_cast<float>(config.ftrl_beta);
  return optimizer;
}

std::size_t shards_of(const RunConfig& config) {
  return static_cast<std::size_t>(config.servers) * static_cast<std::size_t>(config.shards_per_server);
}

ps::Sharding sharding_of(const RunConfig& config) {
  return {.policy = config.sharding, .chunk_bytes = static_cast<std::size_t>(config.chunk_bytes)};
}

bool averages_weights(const RunConfig& config) {
  return config.mode == Mode::kAllreduce && (config.sync_every > 1 || config.gossip);
}

bool compresses(const RunConfig& config) { return config.compress.kind != CodecKind::kNone; }

bool may_compress(const RunConfig& config) {
  if (config.mode == Mode::kPs) return !config.consistency.pushes_weights();
  return config.mode == Mode::kAllreduce && !averages_weights(config) && config.collective != CollectiveKind::kNccl;
}

ps::Compression compression_of(const RunConfig& config) {
  if (config.mode != Mode::kPs || !may_compress(config)) return {};
  return {.codec = config.compress, .answers = config.compress_answers, .seed = config.seed};
}

worker::StragglingOptions straggling_of(const RunConfig& config, int rank) {
  return {.stragglers = config.stragglers, .seed = config.seed, .worker = rank, .longest = longest_delay(config)};
}

Duration stall_warning_of(const RunConfig& config) { return from_seconds(config.stall_warning_seconds); }

bool may_report_stalls(const RunConfig& config) {
  return config.mode == Mode::kAllreduce && config.collective != CollectiveKind::kNccl && !config.gossip;
}

// What was lent to a worker for compensation is what its last answer carried.
bool may_run_ahead(const RunConfig& config) {
  return config.mode == Mode::kPs && config.consistency.kind() == ps::Consistency::Kind::kAsync &&
         config.delay_compensation.lambda == 0;
}

bool may_overlap_forward(const RunConfig& config) {
  const bool runs_ahead = may_run_ahead(config) && config.pipeline_depth > 0;
  return config.mode == Mode::kPs && config.device != DeviceKind::kCuda && !config.consistency.pushes_weights() &&
         !runs_ahead;
}

// Where a push is answered only after other workers', all must push in the same order.
bool may_order_pushes(const RunConfig& config) {
  return may_overlap_forward(config) && config.overlap_forward &&
         config.consistency.kind() == ps::Consistency::Kind::kAsync;
}

ps::Consistency consistency_of(const RunConfig& config) {
  const bool has_backups = config.consistency.kind() == ps::Consistency::Kind::kSync;
  return config.consistency.with_backup_workers(has_backups ? config.backup_workers : 0);
}

ps::StalenessOptions staleness_of(const RunConfig& config) {
  if (!config.consistency.applies_stale_gradients()) return {};
  const bool has_momentum = optimizer_of(config).kind == OptimizerKind::kMomentum;
  return {.divide_rate = config.staleness_lr == StalenessRate::kDivide,
          .compensation = config.delay_compensation,
          .correct_momentum = config.momentum_correction && has_momentum};
}

LearningRateSchedule schedule_of(const RunConfig& config) {
  const Result<LearningRateSchedule> schedule = LearningRateSchedule::parse(config.lr_schedule);
  assert(schedule.ok());
  return *schedule;
}

}  // namespace syncopate::experiments

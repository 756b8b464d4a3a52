#include "experiments/config/rules/config_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "experiments/config/profile_choice.h"
#include "experiments/config/resolved_run.h"
#include "experiments/config/rules/aggregation_rules.h"
#include "experiments/config/rules/colocation_rules.h"
#include "experiments/config/rules/command_rules.h"
#include "experiments/config/rules/compression_rules.h"
#include "experiments/config/rules/data_rules.h"
#include "experiments/config/rules/fault_rules.h"
#include "experiments/config/rules/health_rules.h"
#include "experiments/config/rules/mode_rules.h"
#include "experiments/config/rules/rate_rule.h"
#include "experiments/config/rules/survival_rules.h"
#include "experiments/config/rules/table_rules.h"
#include "worker/data/held_out.h"

namespace syncopate::experiments {
namespace {

// Returns the option as it was given.
std::string option_of(const ResolvedRun& config) {
  return config.checkpoint_every ? "--checkpoint-every=" + config.checkpoint_every->to_string()
                                 : "--resume=" + *config.resume;
}

// For check_rules(): returns what is wrong, and what would be right.
Status validate_checkpoints(const ResolvedRun& config) {
  if (!config.checkpoint_every && !config.resume) return {};
  const std::string option = option_of(config);
  if (config.repeat > 1) {
    return Status::invalid_argument(
        fmt::format("{}: is of one run, and --repeat={} asks for several; leave --repeat out", option, config.repeat));
  }
  if (gossips_asynchronously(config)) {
    return Status::invalid_argument(
        fmt::format("{}: under --gossip=async averages are under way at all times, and no state of one moment is the "
                    "job's; leave it out, or use --gossip, whose partners meet after the same step",
                    option));
  }
  if (has_servers(config) && config.consistency.updates_together() && config.checkpoint_every &&
      config.checkpoint_every->steps % config.consistency.period() != 0) {
    return Status::invalid_argument(
        fmt::format("{}: must be a multiple of {}, the steps from one meeting of --consistency={} to the next", option,
                    config.consistency.period(), config.consistency.to_string()));
  }
  return {};
}

// Each repetition has the next seed.
Status validate_seeds(const ResolvedRun& config) {
  constexpr std::uint64_t kLargest = INT64_MAX;
  const std::uint64_t more = static_cast<std::uint64_t>(config.repeat) - 1;
  if (config.seed <= kLargest - more) return {};
  return Status::invalid_argument(
      fmt::format("--seed={}: --repeat={} takes the seeds behind it, too, up to {} at most; use --seed={} or less",
                  config.seed, config.repeat, kLargest, kLargest - more));
}

Status validate_job(const ResolvedRun& config) {
  SYNCOPATE_RETURN_IF_ERROR(validate_seeds(config));
  if (!is_distributed(config) && config.workers > 1) {
    return Status::invalid_argument(fmt::format("--workers={}: --mode={} trains in one process; use {}", config.workers,
                                                name_of(config.mode), modes_with(&ModeTraits::is_distributed)));
  }
  if (!is_distributed(config) && config.launcher != LauncherKind::kLocal) {
    return Status::invalid_argument(fmt::format(
        "--launcher={}: --mode=local has no processes to spread; leave --launcher out", name_of(config.launcher)));
  }
  SYNCOPATE_RETURN_IF_ERROR(validate_mode(config));
  if (sums_among_workers(config) && config.collective == CollectiveKind::kMpi &&
      config.launcher != LauncherKind::kMpirun) {
    return Status::invalid_argument(
        "--collective=mpi needs --launcher=mpirun: Open MPI connects only the processes that it has started");
  }
  if (averages_weights(config) && is_nccl(config.collective)) {
    return Status::invalid_argument(
        fmt::format("--collective={}: sums gradients alone; with --sync-every and --gossip weights are averaged in the "
                    "host's memory, by --collective=ring or mpi",
                    name_of(config.collective)));
  }
  if (config.precision == worker::Precision::kFp16 && !may_capture_steps(config)) {
    return Status::invalid_argument(
        "--precision=fp16: a step whose gradients overflow is skipped by all ranks together, which --mode=local and "
        "--mode=allreduce with --collective=nccl do; use one of them, or --precision=bf16");
  }
  if (sums_among_workers(config) && is_nccl(config.collective) && !config.bucket_bytes) {
    return Status::invalid_argument(
        "--bucket-bytes=auto: searches among buckets that the host sends, not for NCCL's; give a size, as in "
        "--bucket-bytes=1048576, or --collective=ring");
  }
  return {};
}

Status validate_hosts(const ResolvedRun& config) {
  if (!is_distributed(config)) return {};
  const int slots = total_slots(config.hosts);
  if (!config.hosts.empty() && config.workers > slots) {
    return Status::invalid_argument(
        fmt::format("--workers={}: --hosts={} has {} slot{}; use --workers={}, or give hosts more slots",
                    config.workers, to_text(config.hosts), slots, slots == 1 ? "" : "s", slots));
  }
  if (!spans_hosts(config)) return {};
  if (are_numbered(config.hosts) && config.cluster == ClusterKind::kReal) {
    return Status::invalid_argument(
        fmt::format("--hosts={}: names no host; add --cluster=simulated or --cluster=namespaces, or give names, as in "
                    "A:2,B:2",
                    to_text(config.hosts)));
  }
  const bool is_for_one_host = config.transport == TransportKind::kShm || config.transport == TransportKind::kIpc;
  if (is_for_one_host && exchanges_between_hosts(config)) {
    return Status::invalid_argument(fmt::format(
        "--transport={}: connects processes of one host, and --{} others; use tcp or sockets",
        name_of(config.transport),
        config.hosts.empty() ? "cluster=namespaces has" : fmt::format("hosts={} names", to_text(config.hosts))));
  }
  const auto names_a_user = [](const HostSlots& host) { return host.name.find('@') != std::string::npos; };
  if (config.launcher == LauncherKind::kMpirun && std::ranges::any_of(config.hosts, names_a_user)) {
    return Status::invalid_argument(
        fmt::format("--hosts={}: mpirun takes hosts without a user; name the user in the remote shell's "
                    "configuration, or in --remote-shell",
                    to_text(config.hosts)));
  }
  const auto is_ipv6 = [](const HostSlots& host) { return host.name.find(':') != std::string::npos; };
  if (config.launcher == LauncherKind::kMpirun && std::ranges::any_of(config.hosts, is_ipv6)) {
    return Status::invalid_argument(
        fmt::format("--hosts={}: mpirun takes no IPv6 addresses; give hosts by their names", to_text(config.hosts)));
  }
  return {};
}

// A profile has sizes and times, and nothing that could learn.
Status validate_profile(const ResolvedRun& config) {
  if (!is_profile(config)) return {};
  const auto refused = [&](const std::string& why) {
    return Status::invalid_argument(fmt::format("--model={}: {}", config.model, why));
  };
  SYNCOPATE_RETURN_IF_ERROR(profile_of(config).status());
  if (config.cluster != ClusterKind::kSimulated) {
    return refused("a profile computes nothing; add --cluster=simulated, which lets its time pass");
  }
  if (config.compute.is_solo()) {
    return refused(
        "there is nothing to measure; --compute=150ms gives the time of a step, --compute=15TFLOPS a device's rate, "
        "--compute=v100 the typical step of a known device");
  }
  if (config.checkpoint_every || config.resume) {
    return refused("has no state to save; leave --checkpoint-every and --resume out");
  }
  if (codec_of(config).kind == CodecKind::kPowerSgd) {
    return refused(fmt::format("its matrices are no smaller ones of the same kind; leave --compress={} out",
                               to_string(config.compress)));
  }
  if (config.target_accuracy > 0) return refused("learns nothing; leave --target-accuracy out");
  return {};
}

Status validate_fabric(const ResolvedRun& config, std::size_t hosts) {
  if (static_cast<std::size_t>(config.fabric.racks) <= hosts) return {};
  return Status::invalid_argument(
      fmt::format("--fabric={}: there are {} hosts; use at most as many racks", config.fabric.to_string(), hosts));
}

Status validate_namespaces(const ResolvedRun& config) {
  if (config.cluster != ClusterKind::kNamespaces || !is_distributed(config)) return {};
  const auto refused = [](const std::string& what) {
    return Status::invalid_argument("--cluster=namespaces: " + what);
  };
  if (!config.hosts.empty() && !are_numbered(config.hosts)) {
    return refused(
        fmt::format("--hosts={}: they have numbers, as in --hosts=4x2 for 4 hosts of 2 slots", to_text(config.hosts)));
  }
  if (const std::size_t hosts = own_hosts_of(config); hosts > kMostNamespaces) {
    return refused(fmt::format("at most {} hosts, and these are {}; give them more slots, as in --hosts=4x16",
                               kMostNamespaces, hosts));
  }
  if (const auto& described = config.described_namespaces; described && described->hosts != config.hosts) {
    return refused(fmt::format("has {} hosts, and --hosts={} others; leave one out", to_text(described->hosts),
                               to_text(config.hosts)));
  }
  if (const auto& described = config.described_namespaces;
      described && described->link && described->link != config.shape) {
    return refused(fmt::format("link:{} is each host's, and --shape={} is another; leave one out",
                               described->link->to_string(), config.shape ? config.shape->to_string() : "none"));
  }
  if (config.device == DeviceKind::kCuda) {
    return refused("--device=cuda: all hosts would compute on this machine's GPUs at once; use --device=cpu");
  }
  if (!config.shape && config.fabric.oversubscription > 1) {
    return refused(fmt::format("--fabric={}: a part of which rate? Give hosts a link, as in --shape=1gbit",
                               config.fabric.to_string()));
  }
  return validate_fabric(config, own_hosts_of(config));
}

// Says what a simulated cluster cannot do, and what is for one alone.
Status validate_cluster(const ResolvedRun& config) {
  SYNCOPATE_RETURN_IF_ERROR(validate_profile(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_namespaces(config));
  if (config.cluster != ClusterKind::kSimulated) return {};
  const auto refused = [](const std::string& option, const char* why) {
    return Status::invalid_argument(fmt::format("--cluster=simulated: {} {}", option, why));
  };
  if (config.device == DeviceKind::kCuda) return refused("--device=cuda", "needs a real device; use --device=cpu");
  if (config.launcher == LauncherKind::kMpirun) return refused("--launcher=mpirun", "starts real processes");
  SYNCOPATE_RETURN_IF_ERROR(validate_fabric(config, own_hosts_of(config)));
  if (!config.compute.profile.empty()) SYNCOPATE_RETURN_IF_ERROR(compute_profile_of(config).status());
  if (!config.compute.device.empty()) SYNCOPATE_RETURN_IF_ERROR(device_step_of(config).status());
  return {};
}

// Only messages over our own transports can be shaped, with time stamps of one host's clock. A link of namespaces has
// its rate of the kernel, and its delay as others have.
Status validate_shape(const ResolvedRun& config) {
  if (!config.shape || !is_distributed(config)) return {};
  const std::string shape = config.shape->to_string();
  const bool is_of_kernel = config.cluster == ClusterKind::kNamespaces;
  if (is_of_kernel && config.shape->delay == Duration::zero()) return {};
  if (spans_hosts(config) && !is_of_kernel) {
    return Status::invalid_argument(
        fmt::format("--shape={}: emulates a network on one host, and --hosts={} names others; shape their own "
                    "links, or leave --hosts out",
                    shape, to_text(config.hosts)));
  }
  if (!sums_among_workers(config)) return {};
  if (config.collective == CollectiveKind::kMpi || is_nccl(config.collective)) {
    return Status::invalid_argument(
        fmt::format("--shape={}: --collective={} has wires of its own, which cannot be shaped; use ring, or "
                    "another of our schedules",
                    shape, name_of(config.collective)));
  }
  if (config.collective == CollectiveKind::kDirect && config.transport == TransportKind::kShm) {
    return Status::invalid_argument(
        fmt::format("--shape={}: --collective=direct sends nothing in shared memory, where ranks read each "
                    "other's buffers; use auto or ring, or direct with --transport=sockets",
                    shape));
  }
  return {};
}

Status validate_consistency(const ResolvedRun& config) {
  if (!has_servers(config)) return {};
  const ps::Consistency& consistency = config.consistency;
  const int workers = config.workers;
  if (consistency.traits().backup_workers && config.backup_workers >= workers) {
    return Status::invalid_argument(
        fmt::format("--backup-workers={}: must be fewer than the {} worker{}, of whom an update needs the others",
                    config.backup_workers, workers, workers == 1 ? "" : "s"));
  }
  return consistency.check_workers(workers).in("--consistency=" + consistency.to_string());
}

Status validate_batches(const ResolvedRun& config) {
  const std::int64_t workers = config.workers;
  if (config.global_batch_size && *config.global_batch_size % workers != 0) {
    return Status::invalid_argument(fmt::format(
        "--global-batch-size={}: must be a multiple of the {} workers; {} would be", *config.global_batch_size, workers,
        std::max<std::int64_t>(1, *config.global_batch_size / workers) * workers));
  }
  const std::int64_t global = config.batch_size * workers;
  const std::int64_t trained = worker::trained_samples(config.train_samples, config.validation.value_or(0));
  if (generates_data(config) && config.drop_last && trained < global) {
    const std::string left =
        config.validation ? fmt::format("{} are left beside --validation={}, and ", trained, *config.validation) : "";
    return Status::invalid_argument(
        fmt::format("--train-samples={}: {}must hold one batch of all workers together, here {} samples",
                    config.train_samples, left, global));
  }
  if (config.steps && *config.steps <= config.warmup_steps) {
    return Status::invalid_argument(
        fmt::format("--steps={}: leaves nothing to measure after --warmup-steps={}; must be {} or more", *config.steps,
                    config.warmup_steps, config.warmup_steps + 1));
  }
  return {};
}

Status validate_stragglers(const ResolvedRun& config) {
  return config.stragglers.check(config.workers, longest_delay(config))
      .in("--straggler=" + config.stragglers.to_string());
}

Status validate_stall_warning(const ResolvedRun& config) {
  if (!may_report_stalls(config) || config.stall_warning_seconds < config.timeout_seconds) return {};
  return Status::invalid_argument(fmt::format("--stall-warning={}: must be less than --timeout={}, which ends the run",
                                              config.stall_warning_seconds, config.timeout_seconds));
}

Status validate_schedule(const ResolvedRun& config) {
  const std::string reason = config.lr_schedule.linear_scaling ? why_not_linear(config) : "";
  if (reason.empty()) return {};
  return Status::invalid_argument(fmt::format("--lr-schedule={}: {}", to_string(config.lr_schedule), reason));
}

// A weight of ftrl is a function of all gradients so far and of one rate: another rate would change it at once.
Status validate_ftrl(const ResolvedRun& config) {
  if (!has(traits_of(config.optimizer), rule_number::kL1)) return {};
  const LearningRateSchedule& schedule = config.lr_schedule;
  if (schedule.shape != LearningRateSchedule::Shape::kConstant || schedule.warmup_epochs > 0) {
    return Status::invalid_argument(fmt::format(
        "--lr-schedule={}: must be constant, or constant,linear, with --optimizer=ftrl", to_string(schedule)));
  }
  if (has_servers(config) && config.staleness_lr == StalenessRate::kDivide) {
    return Status::invalid_argument(
        "--staleness-lr=divide: must be keep with --optimizer=ftrl, whose rate stays the same");
  }
  return {};
}

// A trust ratio is of a whole tensor: its rows on servers have none, and neither do kernels.
Status validate_layerwise(const ResolvedRun& config) {
  if (!goes_by_layer(traits_of(config.optimizer))) return {};
  const std::string option = fmt::format("--optimizer={}", name_of(config.optimizer));
  if (has_servers_alone(config) && config.sharding != ps::ShardingPolicy::kWhole &&
      config.sharding != ps::ShardingPolicy::kTensor) {
    return Status::invalid_argument(fmt::format(
        "--sharding={}: must be whole or tensor with {}, which needs whole tensors", name_of(config.sharding), option));
  }
  if (is_recommender(config) && config.embeddings != worker::EmbeddingKind::kDense) {
    return Status::invalid_argument(
        fmt::format("{}: needs the norm of a whole table, of which a step has some rows; use another, as adam, or "
                    "--embeddings=dense",
                    option));
  }
  if (config.device == DeviceKind::kCuda && !is_staged(config)) {
    return Status::invalid_argument(
        fmt::format("{}: GPUs make no updates that go by layer; use another, as adam or momentum, or --mode=ps, whose "
                    "servers make them",
                    option));
  }
  return {};
}

// Returns whether the codec changes the values of a gradient relative to each other: it sends few large ones, or gives
// all values of a chunk the same magnitude. After 150 steps of lenet under adam (allreduce, two workers): none 0.983,
// sign 0.960, topk:0.01 0.942, randomk:0.01 0.546; int8 0.982, powersgd:4 0.976. With 1-bit Adam they cost far less:
// common/codec/README.md.
bool changes_magnitudes(CodecKind kind) {
  return kind == CodecKind::kSign || kind == CodecKind::kTopK || kind == CodecKind::kTopK2Bit ||
         kind == CodecKind::kRandomK;
}

}  // namespace

Status check_rules(const ResolvedRun& config) {
  SYNCOPATE_RETURN_IF_ERROR(validate_job(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_command(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_hosts(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_colocation(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_cluster(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_shape(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_consistency(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_aggregation(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_health(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_compression(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_batches(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_data_order(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_tables(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_checkpoints(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_survival(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_stragglers(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_stall_warning(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_schedule(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_ftrl(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_layerwise(config));
  return validate_faults(config, config.steps.value_or(0));
}

std::vector<std::string> cautions(const ResolvedRun& config) {
  std::vector<std::string> lines;
  if (runs_command(config)) return lines;
  if (has_moments(traits_of(config.optimizer)) && changes_magnitudes(codec_of(config).kind) &&
      !is_one_bit_adam(config) && !averages_weights(config)) {
    lines.push_back(fmt::format(
        "--compress={} with --optimizer={} is likely to cost accuracy: {} divides by the size of what arrives, which "
        "this codec changes; --adam-freeze-variance=STEPS, with a sixth of all steps, does not{} (1-bit Adam), nor do "
        "--optimizer=sgd or momentum",
        to_string(config.compress), name_of(config.optimizer), name_of(config.optimizer),
        sums_among_workers(config) ? "" : " under --mode=allreduce"));
  }
  return lines;
}

}  // namespace syncopate::experiments

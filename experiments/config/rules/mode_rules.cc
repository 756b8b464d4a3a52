#include "experiments/config/rules/mode_rules.h"

#include <fmt/format.h>

#include <string>

#include "experiments/config/resolved_run.h"
#include "experiments/config/rules/division_rules.h"
#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

// Its pairs send messages over one of our own transports.
Status check_asynchronous_gossip(const ResolvedRun& config) {
  if (!gossips_asynchronously(config)) return {};
  if (config.collective == CollectiveKind::kMpi) {
    return Status::invalid_argument(
        "--collective=mpi: --gossip=async sends weights from one worker to another while both compute, over wires of "
        "ours; use --collective=ring");
  }
  if (config.collective == CollectiveKind::kDirect && config.transport == TransportKind::kShm) {
    return Status::invalid_argument(
        "--collective=direct: --gossip=async sends messages, which direct does not in shared memory, where ranks read "
        "each other's buffers together; use --collective=ring, or direct with --transport=sockets");
  }
  return {};
}

// Workers that have a share of the state each.
Status check_shares(const ResolvedRun& config) {
  if (!shards_state(config)) return {};
  const CollectiveKind kind = config.collective;
  if (kind != CollectiveKind::kDirect && kind != CollectiveKind::kRing && kind != CollectiveKind::kMpi) {
    return Status::invalid_argument(fmt::format(
        "--collective={}: cannot stop where each worker has the sums of its share alone; under --mode={} use "
        "direct, ring or mpi",
        name_of(kind), name_of(config.mode)));
  }
  if (goes_by_layer(traits_of(config.optimizer))) {
    return Status::invalid_argument(fmt::format(
        "--optimizer={}: needs the norms of whole tensors, of which a worker has a share under --mode={}; use "
        "another, or --mode=allreduce",
        name_of(config.optimizer), name_of(config.mode)));
  }
  if (!config.bucket_bytes) {
    return Status::invalid_argument(
        fmt::format("--bucket-bytes=auto: shares are cut before the first step under --mode={}; give a size, as in "
                    "--bucket-bytes=1048576",
                    name_of(config.mode)));
  }
  if (!shards_weights(config)) return {};
  if (config.device == DeviceKind::kCuda) {
    return Status::invalid_argument(
        "--device=cuda: a GPU has all weights in its memory, and gathers none under --stage=3; use --stage=2, or "
        "--device=cpu");
  }
  if (config.evaluate_every && config.evaluate_every->seconds > 0) {
    return Status::invalid_argument(fmt::format(
        "--evaluate-every={}: all workers gather the weights for it, after the same step, under --stage=3; give steps "
        "or epochs, as in --evaluate-every=100",
        config.evaluate_every->to_string()));
  }
  if (const int parts = microbatches_of(config); config.batch_size % parts != 0) {
    return Status::invalid_argument(
        fmt::format("--microbatches={}: a worker trains {} samples a step, which are not cut into {} alike; use a "
                    "number that divides them, or another --batch-size",
                    parts, config.batch_size, parts));
  }
  if (!gathers_on_demand(config)) return {};
  if (kind == CollectiveKind::kMpi || config.launcher == LauncherKind::kMpirun) {
    return Status::invalid_argument(
        "--gather=on-demand: each worker answers others while it computes, over wires of ours, and Open MPI has its "
        "own; use --launcher=local, and --collective=direct or ring");
  }
  return {};
}

// Servers for tables, and a collective for the rest.
Status check_hybrid(const ResolvedRun& config) {
  if (!is_hybrid(config) || runs_command(config)) return {};
  if (!has_tables(config)) {
    return Status::invalid_argument(
        fmt::format("--mode={}: its servers keep row-sparse tables, and {} has none; use --mode=allreduce, or "
                    "--model=ncf or wide-deep with --embeddings=sparse",
                    name_of(config.mode), config.model));
  }
  if (config.launcher == LauncherKind::kMpirun || config.collective == CollectiveKind::kMpi) {
    return Status::invalid_argument(fmt::format(
        "--mode={}: has servers beside the workers that sum, and Open MPI sums over all that mpirun starts; "
        "use --launcher=local, and a collective of our own, as in --collective=ring",
        name_of(config.mode)));
  }
  // What its own schedules are for is told by no measurement.
  const bool is_known = config.shape || config.collective == CollectiveKind::kBySize ||
                        (config.transport == TransportKind::kShm && config.collective == CollectiveKind::kDirect);
  if (chooses_exchanges(config) && !is_known) {
    return Status::invalid_argument(fmt::format(
        "--exchange=auto: needs the wire's speed, which --collective={} does not measure; leave --collective out, or "
        "give the link, as in --shape=10gbit",
        name_of(config.collective)));
  }
  return {};
}

// A quorum of the workers that meet at servers.
Status check_quorum(const ResolvedRun& config) {
  const ps::Quorum quorum = consistency_of(config).quorum();
  if (quorum.is_all()) return {};
  const auto refused = [&](const std::string& why) {
    return Status::invalid_argument(fmt::format("--quorum={}: {}", quorum.to_string(), why));
  };
  if (quorum.workers > config.workers) {
    return refused(fmt::format("must be 1 to {}, the workers", config.workers));
  }
  if (may_have_replicas(config) && config.replicas > 0) {
    return refused("a server and its standby could end a meeting with different workers; leave --replicas out");
  }
  if (config.checkpoint_every || config.resume) {
    return refused(
        fmt::format("workers are at different meetings, and no state of one moment is the job's; leave {} out",
                    config.resume ? "--resume" : "--checkpoint-every"));
  }
  return {};
}

// Fragments meet one after the other.
Status check_meetings(const ResolvedRun& config) {
  if (!meets_all(config)) return {};
  if (config.sync_fragments > config.sync_every) {
    return Status::invalid_argument(
        fmt::format("--sync-fragments={}: each meets in a step of its own; use at most {}, "
                    "the steps of --sync-every",
                    config.sync_fragments, config.sync_every));
  }
  const std::int64_t apart = config.sync_every / config.sync_fragments;
  if (config.sync_overlap >= apart) {
    return Status::invalid_argument(fmt::format(
        "--sync-overlap={}: a meeting must have ended when the next begins, which is {} step{} later at the least; use "
        "at most {}",
        config.sync_overlap, apart, apart == 1 ? "" : "s", apart - 1));
  }
  return {};
}

}  // namespace

Status validate_mode(const ResolvedRun& config) {
  SYNCOPATE_RETURN_IF_ERROR(check_shares(config));
  SYNCOPATE_RETURN_IF_ERROR(check_hybrid(config));
  SYNCOPATE_RETURN_IF_ERROR(check_meetings(config));
  SYNCOPATE_RETURN_IF_ERROR(check_quorum(config));
  SYNCOPATE_RETURN_IF_ERROR(validate_division(config));
  return check_asynchronous_gossip(config);
}

}  // namespace syncopate::experiments

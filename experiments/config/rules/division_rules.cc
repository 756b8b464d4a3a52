#include "experiments/config/rules/division_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

using Run = ResolvedRun;

// A kind of run that is refused: the option, why it cannot be, and what would be right.
struct DivisionRefusal {
  bool (*holds)(const Run&);
  std::string (*why)(const Run&);
};

constexpr std::array kCollectives{CollectiveKind::kDirect,   CollectiveKind::kRing, CollectiveKind::kHalvingDoubling,
                                  CollectiveKind::kDoubling, CollectiveKind::kTree, CollectiveKind::kBinomialTree};

bool interleaves(const Run& r) { return interleaves_stages(r); }

// The next number that all stages' groups have, and that divides the batch if any does.
int microbatches_in_groups(const Run& r) {
  const int next = (microbatches_of(r) / r.pipeline + 1) * r.pipeline;
  for (int count = next; count <= replica_batch(r); count += r.pipeline) {
    if (replica_batch(r) % count == 0) return count;
  }
  return next;
}

const DivisionRefusal kOfStages[] = {
    {[](const Run& r) { return r.workers % r.pipeline != 0; },
     [](const Run& r) {
       return fmt::format("must divide the {} workers, of which each stage has as many; use --workers={}", r.workers,
                          std::max(1, r.workers / r.pipeline) * r.pipeline);
     }},
    {[](const Run& r) { return splits_layers(r) && r.workers % (r.pipeline * r.tensor) != 0; },
     [](const Run& r) {
       const int of_replica = r.pipeline * r.tensor;
       return fmt::format(
           "with --tensor={} {} workers have a whole model, which must divide the {} workers; use "
           "--workers={}",
           r.tensor, of_replica, r.workers, std::max(1, r.workers / of_replica) * of_replica);
     }},
    {[](const Run& r) { return replica_batch(r) % microbatches_of(r) != 0; },
     [](const Run& r) {
       return fmt::format(
           "its {} workers train {} samples together, which are not cut into --microbatches={} alike; "
           "use a number that divides them",
           replica_batch(r) / r.batch_size, replica_batch(r), microbatches_of(r));
     }},
    {[](const Run& r) { return interleaves_stages(r) && microbatches_of(r) % r.pipeline != 0; },
     [](const Run& r) {
       return fmt::format(
           "--pipeline-schedule=interleaved takes groups of {} microbatches through each chunk, into which "
           "--microbatches={} are not cut; use --microbatches={}",
           r.pipeline, microbatches_of(r), microbatches_in_groups(r));
     }},
    {[](const Run& r) { return stashes_weights(r) && microbatches_of(r) > 1; },
     [](const Run& r) {
       return fmt::format(
           "--pipeline-schedule=pipedream updates after each batch, which is one microbatch; leave "
           "--microbatches={} out",
           microbatches_of(r));
     }},
    {[](const Run& r) { return stashes_weights(r) && (r.checkpoint_every || r.resume); },
     [](const Run& r) {
       return fmt::format(
           "--pipeline-schedule=pipedream has batches in flight between steps, which no checkpoint has; leave {} out",
           r.resume ? "--resume" : "--checkpoint-every");
     }},
};

const DivisionRefusal kOfStagesAtServers[] = {
    {[](const Run& r) { return stashes_weights(r); },
     [](const Run&) -> std::string {
       return "--pipeline-schedule=pipedream updates as soon as a gradient is there, and a server's answer would be "
              "waited for; use another schedule, or --mode=allreduce";
     }},
    {interleaves,
     [](const Run&) -> std::string {
       return "--pipeline-schedule=interleaved: a server's shards are of a stage whose layers are side by side; use "
              "another schedule";
     }},
    {[](const Run& r) { return r.consistency.sums_gradients() || r.consistency.pushes_weights(); },
     [](const Run& r) {
       return fmt::format(
           "--consistency={}: a server's update there is of several workers' pushes, or of their weights, and stages "
           "have sync, bounded, dynamic and async; use one of them",
           r.consistency.to_string());
     }},
    {[](const Run& r) { return r.backup_workers > 0; },
     [](const Run& r) {
       return fmt::format("--backup-workers={}: each stage would leave out another pipeline's push; leave it out",
                          r.backup_workers);
     }},
    {[](const Run& r) { return r.replicas > 0 || r.respawn_seconds; },
     [](const Run& r) {
       return fmt::format("{}: a pipeline cannot go on where its stages have come to different steps; leave it out",
                          r.replicas > 0 ? "--replicas" : "--respawn");
     }},
    {[](const Run& r) { return aggregates_on_hosts(r); },
     [](const Run&) -> std::string {
       return "--aggregation: the workers of a host may have different stages; leave it out";
     }},
    {[](const Run& r) { return (r.checkpoint_every || r.resume) && goes_at_own_pace(r); },
     [](const Run& r) {
       return fmt::format(
           "{}: under --consistency={} stages are saved after different steps; leave it out, or use sync",
           r.resume ? "--resume" : "--checkpoint-every", r.consistency.to_string());
     }},
    {[](const Run& r) { return (r.checkpoint_every || r.resume) && r.cluster == ClusterKind::kSimulated; },
     [](const Run& r) {
       return fmt::format("{}: a simulated cluster cuts stages by their time; leave it out",
                          r.resume ? "--resume" : "--checkpoint-every");
     }},
};

const DivisionRefusal kOfSplitLayers[] = {
    {[](const Run& r) { return r.workers % r.tensor != 0; },
     [](const Run& r) {
       return fmt::format("must divide the {} workers, of which each part of a layer has as many; use --workers={}",
                          r.workers, std::max(1, r.workers / r.tensor) * r.tensor);
     }},
    {[](const Run& r) { return is_profile(r); },
     [](const Run& r) {
       return fmt::format("--model={} knows tensors and no layers; name the model itself, as in --model=gpt:4-4-128",
                          r.model);
     }},
    {[](const Run& r) { return goes_by_layer(traits_of(r.optimizer)); },
     [](const Run& r) {
       return fmt::format("--optimizer={} takes norms of whole tensors, of which a worker has a part; use another",
                          name_of(r.optimizer));
     }},
};

const DivisionRefusal kOfBoth[] = {
    {[](const Run& r) { return runs_command(r); },
     [](const Run&) -> std::string {
       return "is for Syncopate's own worker, which has its model in layers; leave it out";
     }},
    {[](const Run& r) { return r.device == DeviceKind::kCuda; },
     [](const Run&) -> std::string { return "sends activations from the host's memory; use --device=cpu"; }},
    {[](const Run& r) { return r.launcher == LauncherKind::kMpirun; },
     [](const Run&) -> std::string {
       return "has a group of workers for each part of the model, and mpirun one of all; use --launcher=local";
     }},
    {[](const Run& r) {
       return sums_among_workers(r) && std::ranges::find(kCollectives, r.collective) == kCollectives.end();
     },
     [](const Run& r) {
       return fmt::format(
           "--collective={} is of all workers, and those of a part of the model sum among themselves; use direct, or "
           "ring or another schedule of ours",
           r.collective == CollectiveKind::kBySize ? "auto" : name_of(r.collective));
     }},
    {[](const Run& r) { return is_recommender(r); },
     [](const Run& r) { return fmt::format("--model={} is no chain of layers; use another model", r.model); }},
    {[](const Run& r) { return compresses(r); },
     [](const Run& r) {
       return fmt::format("--compress={} is for workers that have the whole model; leave it out",
                          to_string(r.compress));
     }},
    {[](const Run& r) { return sums_among_workers(r) && r.elastic; },
     [](const Run&) -> std::string {
       return "--elastic: without a part of the model there is nothing to go on with; leave it out";
     }},
    {[](const Run& r) { return r.on_nan == OnNan::kSkip; },
     [](const Run&) -> std::string {
       return "--on-nan=skip: workers of other parts do not see a gradient that is to be left out; use --on-nan=stop";
     }},
    {[](const Run& r) { return !r.stragglers.empty(); },
     [](const Run&) -> std::string {
       return "--straggler: waits for others inside a pass would count as its computing; leave it out";
     }},
    {[](const Run& r) { return !r.sample_costs.are_equal() && r.cluster != ClusterKind::kSimulated; },
     [](const Run&) -> std::string {
       return "--sample-cost: waits for others inside a pass would count as its computing; leave it out, or use "
              "--cluster=simulated";
     }},
    {[](const Run& r) { return sums_among_workers(r) && !r.bucket_bytes; },
     [](const Run&) -> std::string {
       return "--bucket-bytes=auto searches by steps of all workers; give a size, as in --bucket-bytes=1048576";
     }},
    {[](const Run& r) { return has_samples_of_its_own(r) || shards_by_label(r); },
     [](const Run&) -> std::string {
       return "all workers of a model's parts train the same samples; use --shard=random and --shuffle=global or off";
     }},
    {[](const Run& r) { return r.evaluate_every && r.evaluate_every->seconds > 0; },
     [](const Run& r) {
       return fmt::format(
           "--evaluate-every={}: all parts send their weights for it after the same step; give steps or "
           "epochs, as in --evaluate-every=100",
           r.evaluate_every->to_string());
     }},
};

Status check_all(std::span<const DivisionRefusal> refusals, const Run& config, const std::string& option) {
  for (const DivisionRefusal& one : refusals) {
    if (one.holds(config)) return Status::invalid_argument(option + ": " + one.why(config));
  }
  return {};
}

}  // namespace

Status validate_division(const ResolvedRun& config) {
  const std::pair<bool, std::pair<std::string, std::span<const DivisionRefusal>>> kinds[] = {
      {is_pipelined(config), {fmt::format("--pipeline={}", config.pipeline), kOfStages}},
      {is_pipelined(config) && has_servers(config),
       {fmt::format("--pipeline={}", config.pipeline), kOfStagesAtServers}},
      {splits_layers(config), {fmt::format("--tensor={}", config.tensor), kOfSplitLayers}}};
  for (const auto& [is_so, kind] : kinds) {
    if (!is_so) continue;
    SYNCOPATE_RETURN_IF_ERROR(check_all(kind.second, config, kind.first));
    SYNCOPATE_RETURN_IF_ERROR(check_all(kOfBoth, config, kind.first));
  }
  return {};
}

}  // namespace syncopate::experiments

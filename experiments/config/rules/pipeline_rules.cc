#include "experiments/config/rules/pipeline_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

using Run = ResolvedRun;

// A kind of run that is refused: the option, why it cannot be, and what would be right.
struct StageRefusal {
  bool (*holds)(const Run&);
  std::string (*why)(const Run&);
};

constexpr std::array kCollectives{CollectiveKind::kDirect,   CollectiveKind::kRing, CollectiveKind::kHalvingDoubling,
                                  CollectiveKind::kDoubling, CollectiveKind::kTree, CollectiveKind::kBinomialTree};

const StageRefusal kStageRefusals[] = {
    {[](const Run& r) { return runs_command(r); },
     [](const Run&) -> std::string {
       return "is for Syncopate's own worker, which has its model in layers; leave it out";
     }},
    {[](const Run& r) { return r.workers % r.pipeline != 0; },
     [](const Run& r) {
       return fmt::format("must divide the {} workers, of which each stage has as many; use --workers={}", r.workers,
                          std::max(1, r.workers / r.pipeline) * r.pipeline);
     }},
    {[](const Run& r) { return pipeline_batch(r) % microbatches_of(r) != 0; },
     [](const Run& r) {
       return fmt::format(
           "its {} workers train {} samples together, which are not cut into --microbatches={} alike; "
           "use a number that divides them",
           r.pipeline, pipeline_batch(r), microbatches_of(r));
     }},
    {[](const Run& r) { return r.device == DeviceKind::kCuda; },
     [](const Run&) -> std::string { return "sends activations from the host's memory; use --device=cpu"; }},
    {[](const Run& r) { return r.launcher == LauncherKind::kMpirun; },
     [](const Run&) -> std::string {
       return "has a group of workers for each stage, and mpirun one of all; use --launcher=local";
     }},
    {[](const Run& r) { return std::ranges::find(kCollectives, r.collective) == kCollectives.end(); },
     [](const Run& r) {
       return fmt::format(
           "--collective={} is of all workers, and a stage sums among its own; use direct, or ring or "
           "another schedule of ours",
           r.collective == CollectiveKind::kBySize ? "auto" : name_of(r.collective));
     }},
    {[](const Run& r) { return is_recommender(r); },
     [](const Run& r) { return fmt::format("--model={} is no chain of layers; use another model", r.model); }},
    {[](const Run& r) { return compresses(r); },
     [](const Run& r) {
       return fmt::format("--compress={} is for workers that have the whole model; leave it out",
                          to_string(r.compress));
     }},
    {[](const Run& r) { return r.elastic; },
     [](const Run&) -> std::string {
       return "--elastic: without a stage there is no model to go on with; leave it out";
     }},
    {[](const Run& r) { return r.on_nan == OnNan::kSkip; },
     [](const Run&) -> std::string {
       return "--on-nan=skip: other stages do not see a gradient that is to be left out; use --on-nan=stop";
     }},
    {[](const Run& r) { return !r.stragglers.empty(); },
     [](const Run&) -> std::string {
       return "--straggler: waits for neighbours inside a pass would count as its computing; leave it out";
     }},
    {[](const Run& r) { return !r.sample_costs.are_equal() && r.cluster != ClusterKind::kSimulated; },
     [](const Run&) -> std::string {
       return "--sample-cost: waits for neighbours inside a pass would count as its computing; leave it out, or use "
              "--cluster=simulated";
     }},
    {[](const Run& r) { return !r.bucket_bytes; },
     [](const Run&) -> std::string {
       return "--bucket-bytes=auto searches by steps of all workers; give a size, as in --bucket-bytes=1048576";
     }},
    {[](const Run& r) { return has_samples_of_its_own(r) || shards_by_label(r); },
     [](const Run&) -> std::string {
       return "all workers of a pipeline train the same samples; use --shard=random and --shuffle=global or off";
     }},
    {[](const Run& r) { return r.evaluate_every && r.evaluate_every->seconds > 0; },
     [](const Run& r) {
       return fmt::format(
           "--evaluate-every={}: all stages send their weights for it after the same step; give steps or "
           "epochs, as in --evaluate-every=100",
           r.evaluate_every->to_string());
     }},
};

}  // namespace

Status validate_pipeline(const ResolvedRun& config) {
  if (!is_pipelined(config)) return {};
  for (const StageRefusal& one : kStageRefusals) {
    if (one.holds(config)) {
      return Status::invalid_argument(fmt::format("--pipeline={}: {}", config.pipeline, one.why(config)));
    }
  }
  return {};
}

}  // namespace syncopate::experiments

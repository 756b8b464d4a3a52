#include <fmt/format.h>

#include "common/group_limits.h"
#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

using option_kinds::choice;
using option_kinds::flag;
using option_kinds::number;
using option_kinds::only;
using option_kinds::wrong;

using C = RunRequest;

constexpr std::string_view kColocated = "colocated";

// Returns how far workers run apart under each kind.
std::string consistency_sentence() {
  std::string text = "How far workers may run apart.";
  for (const ps::ConsistencyTraits& traits : ps::consistency_traits()) {
    text += fmt::format("{} {}: {}", text.ends_with('.') ? "" : ";", traits.usage(), traits.sentence);
  }
  return text + ".";
}

OptionSpec consistency() {
  OptionSpec option{.group = "Parameter servers",
                    .name = "consistency",
                    .of_mode = true,
                    .placeholder = "KIND",
                    .sentence = consistency_sentence(),
                    .range = ps::Consistency::forms(),
                    .usual = RunSettings().consistency.to_string(),
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<ps::Consistency> parsed = ps::Consistency::parse(value);
    if (!parsed.ok()) return wrong(option, value, "consistency");
    request.consistency = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.consistency.to_string(); };
  return option;
}

// Reads "colocated" and "colocated+2".
bool read_colocated(std::string_view text, RunRequest& request) {
  if (!text.starts_with(kColocated)) return false;
  const std::string_view more = text.substr(kColocated.size());
  const std::optional<int> spare = more.empty() ? 0 : parse_number<int>(more.substr(1));
  if (!spare || (!more.empty() && (more.front() != '+' || *spare < 1 || *spare > kMostServers))) return false;
  request.colocated = true;
  request.spare_servers = *spare;
  return true;
}

OptionSpec servers() {
  OptionSpec option =
      number({.group = "Parameter servers",
              .name = "servers",
              .placeholder = "K",
              .sentence = "Processes that hold the weights, a part each (under --mode=hybrid the rows of "
                          "tables); colocated: threads of each worker's process hold a part, and "
                          "workers reach their own in memory; colocated+K: K servers on hosts of their own besides, "
                          "with parts that fill all links alike.",
              .unit = "processes",
              .range = fmt::format("1 to {}, {} or {}+K", kMostServers, kColocated, kColocated),
              .is_text = true},
             &C::servers, "parameter servers", 1, kMostServers);
  option.set = [set = option.set](RunRequest& request, const std::string& value) -> Status {
    if (read_colocated(value, request)) return {};
    request.colocated = false;
    return set(request, value);
  };
  option.get = [](const ResolvedRun& config) { return servers_text(config); };
  return option;
}

OptionSpec quorum() {
  OptionSpec option{.group = "Parameter servers",
                    .name = "quorum",
                    .placeholder = "K",
                    .sentence =
                        "A meeting ends once K workers have come to it, and TIME has passed or all have come; "
                        "who comes later goes on from the newest weights, and counts in the next meeting.",
                    .range = ps::Quorum::forms(),
                    .usual = "all",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<ps::Quorum> parsed = ps::Quorum::parse(value);
    if (!parsed.ok()) return wrong(option, value, "quorum");
    request.quorum = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.quorum.to_string(); };
  return option;
}

OptionSpec delay_compensation() {
  OptionSpec option{.group = "Parameter servers",
                    .name = "delay-compensation",
                    .placeholder = "LAMBDA",
                    .sentence =
                        "Corrects a stale gradient for what the weights have done since its pull (DC-ASGD; 0.04, "
                        "or adaptive:2, are its authors'); a server keeps up to a shard more for each worker.",
                    .range = "LAMBDA or adaptive:LAMBDA with LAMBDA from 0 (none) to 1000",
                    .usual = RunSettings().delay_compensation.to_string(),
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<ps::DelayCompensation> parsed = ps::DelayCompensation::parse(value);
    if (!parsed.ok()) return wrong(option, value, "delay compensation");
    request.delay_compensation = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.delay_compensation.to_string(); };
  return option;
}

void add_consistency_details(std::vector<OptionSpec>& table) {
  const std::string group = "Parameter servers";
  table.push_back(
      only(choice({.group = group,
                   .name = "work",
                   .placeholder = "HOW",
                   .sentence = "Who trains how much; shared: each worker draws its next batches from one queue of the "
                               "whole job, so that a slow one trains fewer and all end together; quota: each trains "
                               "an equal part, and the job ends with the slowest."},
                  &C::work, "division of work", {WorkDivision::kShared, WorkDivision::kQuota}),
           conditions::kSharedWork));
  table.push_back(only(number({.group = group,
                               .name = "backup-workers",
                               .placeholder = "B",
                               .sentence = "Of the workers, so many more than an update needs: it takes the first "
                                           "gradients, and drops what comes later.",
                               .unit = "processes"},
                              &C::backup_workers, "backup workers", 0, 63),
                       conditions::kBackupWorkers));
  table.push_back(only(quorum(), conditions::kQuorum));
  table.push_back(only(choice({.group = group,
                               .name = "aggregation",
                               .placeholder = "WHERE",
                               .sentence = "Who pushes; off: each worker its gradient; host: on several hosts, one "
                                           "worker of each the sum of its host's, so that a host's link carries one "
                                           "gradient and one set of weights a step. The bits are the same."},
                              &C::aggregation, "aggregation", {Aggregation::kOff, Aggregation::kHost}),
                       conditions::kAggregates));
  table.push_back(only(number({.group = group,
                               .name = "elastic-alpha",
                               .placeholder = "X",
                               .sentence = "How far a worker and the center move towards each other.",
                               .unit = "fraction of their distance",
                               .usual = "0.9 / workers"},
                              &C::elastic_alpha, &ResolvedRun::elastic_alpha, "alpha", 0.0001, 0.9999),
                       conditions::kElastic));
  table.push_back(
      only(choice({.group = group,
                   .name = "staleness-lr",
                   .placeholder = "HOW",
                   .sentence = "What staleness does to a gradient; divide: gradient / staleness before it enters the "
                               "update, under all rules but sgd and momentum rate / staleness."},
                  &C::staleness_lr, "staleness rate", {StalenessRate::kKeep, StalenessRate::kDivide}),
           conditions::kStale));
  table.push_back(only(delay_compensation(), conditions::kStale));
  table.push_back(
      only(flag({.group = group,
                 .name = "momentum-correction",
                 .sentence = "Lowers --momentum by the delay that the measured staleness adds, and raises the rate by "
                             "as much as that takes away, so that a gradient moves the weights as far as without."},
                &C::momentum_correction),
           conditions::kStaleMomentum));
}

}  // namespace

void add_ps_options(std::vector<OptionSpec>& table) {
  table.push_back(only(servers(), conditions::kHasServers));
  table.push_back(only(number({.group = "Parameter servers",
                               .name = "shards-per-server",
                               .placeholder = "S",
                               .sentence = "Parts of a server's weights, with a thread each.",
                               .unit = "threads"},
                              &C::shards_per_server, "shards per server", 1, ps::kMostShardsPerServer),
                       conditions::kHasServers));
  table.push_back(only(consistency(), conditions::kPs));
  add_consistency_details(table);
  table.push_back(
      only(choice_or_auto<ps::ShardingPolicy>(
               {.group = "Parameter servers",
                .name = "sharding",
                .placeholder = "POLICY",
                .sentence = "Which shard gets what: equal ranges, whole tensors in turns, chunks by a hash of their "
                            "key, chunks to the least loaded, or whole tensors to the least loaded. auto: balanced, "
                            "and whole with --optimizer=lars or lamb, which need whole tensors."},
               &C::sharding, &ResolvedRun::sharding, "sharding",
               {std::begin(ps::kShardingPolicies), std::end(ps::kShardingPolicies)}),
           conditions::kSeveralShards));
  const auto cut_only = [&](OptionSpec option) { table.push_back(only(std::move(option), conditions::kCutChunks)); };
  cut_only(number({.group = "Parameter servers",
                   .name = "chunk-bytes",
                   .placeholder = "BYTES",
                   .sentence = "The most that is pushed, applied and pulled as one.",
                   .unit = "bytes",
                   .usual = "262144 over shared memory, else 1048576"},
                  &C::chunk_bytes, &ResolvedRun::chunk_bytes, "chunk size", std::int64_t{4096}, std::int64_t{1} << 30));
  table.push_back(only(number({.group = "Parameter servers",
                               .name = "pipeline-depth",
                               .placeholder = "D",
                               .sentence = "Steps that a worker runs ahead of the answers to its pushes; each costs "
                                           "another copy of the gradients, and staleness.",
                               .unit = "steps"},
                              &C::pipeline_depth, "pipeline depth", 0, 16),
                       conditions::kRunsAhead));
  table.push_back(
      only(flag({.group = "Parameter servers",
                 .name = "overlap-forward",
                 .sentence = "Lets weights come while the next forward pass runs; a layer waits for its own alone."},
                &C::overlap_forward),
           conditions::kOverlapsForward));
  table.push_back(only(choice({.group = "Parameter servers",
                               .name = "push-order",
                               .placeholder = "ORDER",
                               .sentence = "What goes first where chunks queue: what backward finished first, or what "
                                           "the next forward pass needs first."},
                              &C::push_order, "push order", {ps::PushOrder::kFifo, ps::PushOrder::kPriority}),
                       conditions::kOrdersPushes));
}

}  // namespace syncopate::experiments

#include <fmt/format.h>

#include "common/text/list_text.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

using option_kinds::choice;
using option_kinds::flag;
using option_kinds::number;
using option_kinds::only;
using option_kinds::unless_zero;
using option_kinds::wrong;

using C = RunConfig;

bool has_several_shards(const RunConfig& config) { return is_ps(config) && shards_of(config) > 1; }
bool may_have_backups(const RunConfig& config) { return is_ps(config) && config.consistency.traits().backup_workers; }
bool is_elastic_ps(const RunConfig& config) { return is_ps(config) && config.consistency.is_elastic(); }
bool is_stale(const RunConfig& config) { return is_ps(config) && config.consistency.applies_stale_gradients(); }
bool is_stale_with_momentum(const RunConfig& config) {
  return is_stale(config) && (config.optimizer == "momentum" || config.optimizer == "nesterov");
}

// Returns "--consistency=" and the kinds of which `test` is true, as in "--consistency=bounded or async".
std::string consistency_among(ps::ConsistencyTest test) {
  return "--consistency=" + list_text(ps::consistency_names(test), "or");
}

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
                    .placeholder = "KIND",
                    .sentence = consistency_sentence(),
                    .range = ps::Consistency::forms(),
                    .usual = RunConfig().consistency.to_string(),
                    .is_text = true};
  option.set = [option](RunConfig& config, const std::string& value) -> Status {
    const Result<ps::Consistency> parsed = ps::Consistency::parse(value);
    if (!parsed.ok()) return wrong(option, value, "consistency");
    config.consistency = *parsed;
    return {};
  };
  option.get = [](const RunConfig& config) { return config.consistency.to_string(); };
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
                    .usual = RunConfig().delay_compensation.to_string(),
                    .is_text = true};
  option.set = [option](RunConfig& config, const std::string& value) -> Status {
    const Result<ps::DelayCompensation> parsed = ps::DelayCompensation::parse(value);
    if (!parsed.ok()) return wrong(option, value, "delay compensation");
    config.delay_compensation = *parsed;
    return {};
  };
  option.get = [](const RunConfig& config) { return config.delay_compensation.to_string(); };
  return option;
}

void add_consistency_details(std::vector<OptionSpec>& table) {
  const std::string group = "Parameter servers";
  using Traits = ps::ConsistencyTraits;
  const std::string stale = consistency_among([](const Traits& kind) { return kind.applies_stale_gradients(); });
  table.push_back(
      only(choice({.group = group,
                   .name = "work",
                   .placeholder = "HOW",
                   .sentence = "Who trains how much; shared: each worker draws its next batches from one queue of the "
                               "whole job, so that a slow one trains fewer and all end together; quota: each trains "
                               "an equal part, and the job ends with the slowest."},
                  &C::work, "division of work", {WorkDivision::kShared, WorkDivision::kQuota}),
           consistency_among([](const Traits& kind) { return kind.shares_work(); }) + ", or --gossip=async",
           may_share_work));
  table.push_back(only(number({.group = group,
                               .name = "backup-workers",
                               .placeholder = "B",
                               .sentence = "Of the workers, so many more than an update needs: it takes the first "
                                           "gradients, and drops what comes later.",
                               .unit = "processes"},
                              &C::backup_workers, "backup workers", 0, 63),
                       consistency_among([](const Traits& kind) { return kind.backup_workers; }), may_have_backups));
  table.push_back(only(unless_zero(number({.group = group,
                                           .name = "elastic-alpha",
                                           .placeholder = "X",
                                           .sentence = "How far a worker and the center move towards each other.",
                                           .unit = "fraction of their distance",
                                           .usual = "0.9 / workers"},
                                          &C::elastic_alpha, "alpha", 0.0001, 0.9999)),
                       consistency_among([](const Traits& kind) { return kind.is_elastic(); }), is_elastic_ps));
  table.push_back(
      only(choice({.group = group,
                   .name = "staleness-lr",
                   .placeholder = "HOW",
                   .sentence = "What staleness does to a gradient; divide: gradient / staleness before it enters the "
                               "update, under adam, adamw and adagrad rate / staleness."},
                  &C::staleness_lr, "staleness rate", {StalenessRate::kKeep, StalenessRate::kDivide}),
           stale, is_stale));
  table.push_back(only(delay_compensation(), stale, is_stale));
  table.push_back(
      only(flag({.group = group,
                 .name = "momentum-correction",
                 .sentence = "Lowers --momentum by the delay that the measured staleness adds, and raises the rate by "
                             "as much as that takes away, so that a gradient moves the weights as far as without."},
                &C::momentum_correction),
           stale + " and --optimizer=momentum or nesterov", is_stale_with_momentum));
}

}  // namespace

void add_ps_options(std::vector<OptionSpec>& table) {
  const auto is_ps_only = [&](OptionSpec option) { table.push_back(only(std::move(option), "--mode=ps", is_ps)); };
  is_ps_only(number({.group = "Parameter servers",
                     .name = "servers",
                     .placeholder = "K",
                     .sentence = "Processes that hold the weights, a part each.",
                     .unit = "processes"},
                    &C::servers, "parameter servers", 1, 64));
  is_ps_only(number({.group = "Parameter servers",
                     .name = "shards-per-server",
                     .placeholder = "S",
                     .sentence = "Parts of a server's weights, with a thread each.",
                     .unit = "threads"},
                    &C::shards_per_server, "shards per server", 1, 64));
  is_ps_only(consistency());
  add_consistency_details(table);
  table.push_back(
      only(choice({.group = "Parameter servers",
                   .name = "sharding",
                   .placeholder = "POLICY",
                   .sentence = "Which shard gets what: equal ranges, whole tensors in turns, chunks by a hash "
                               "of their key, or chunks to the least loaded."},
                  &C::sharding, "sharding", {std::begin(ps::kShardingPolicies), std::end(ps::kShardingPolicies)}),
           "--mode=ps and several shards (--servers, --shards-per-server)", has_several_shards));
  is_ps_only(unless_zero(number({.group = "Parameter servers",
                                 .name = "chunk-bytes",
                                 .placeholder = "BYTES",
                                 .sentence = "The most that is pushed, applied and pulled as one.",
                                 .unit = "bytes",
                                 .usual = "262144 over shared memory, else 1048576"},
                                &C::chunk_bytes, "chunk size", std::int64_t{4096}, std::int64_t{1} << 30)));
  const std::string pipelined = consistency_among([](const ps::ConsistencyTraits& kind) { return kind.pipeline; });
  table.push_back(only(number({.group = "Parameter servers",
                               .name = "pipeline-depth",
                               .placeholder = "D",
                               .sentence = "Steps that a worker runs ahead of the answers to its pushes; each costs "
                                           "another copy of the gradients, and staleness.",
                               .unit = "steps"},
                              &C::pipeline_depth, "pipeline depth", 0, 16),
                       pipelined + ", and without --delay-compensation", may_run_ahead));
  table.push_back(
      only(flag({.group = "Parameter servers",
                 .name = "overlap-forward",
                 .sentence = "Lets weights come while the next forward pass runs; a layer waits for its own alone."},
                &C::overlap_forward),
           "--device=cpu, --pipeline-depth=0, and " +
               consistency_among([](const ps::ConsistencyTraits& kind) { return !kind.pushes_weights; }),
           may_overlap_forward));
  table.push_back(only(choice({.group = "Parameter servers",
                               .name = "push-order",
                               .placeholder = "ORDER",
                               .sentence = "What goes first where chunks queue: what backward finished first, or what "
                                           "the next forward pass needs first."},
                              &C::push_order, "push order", {ps::PushOrder::kFifo, ps::PushOrder::kPriority}),
                       "--overlap-forward and " + pipelined, may_order_pushes));
}

}  // namespace syncopate::experiments

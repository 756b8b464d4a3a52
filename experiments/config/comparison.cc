#include "experiments/config/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "allreduce/schedule/schedule.h"
#include "common/text/nearest_name.h"
#include "common/text/number.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/preset.h"
#include "experiments/config/resolution.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {
namespace {

// Returns the labels that a misspelt one may mean.
std::vector<std::string> known_labels() {
  std::vector<std::string> labels;
  for (const ModeTraits& mode : kModeTraits) {
    if (!mode.has_servers_alone()) labels.emplace_back(mode.name);
    for (const std::string& kind : ps::consistency_usages([](const ps::ConsistencyTraits&) { return true; })) {
      if (mode.has_servers_alone()) labels.push_back(fmt::format("{}:{}", mode.name, kind));
    }
    for (const allreduce::ScheduleKind kind : allreduce::kAllScheduleKinds) {
      if (mode.sums_among_workers) labels.push_back(fmt::format("{}:{}", mode.name, allreduce::name_of(kind)));
    }
  }
  return labels;
}

Status wrong_mode(const std::string& label) {
  if (label == kEveryMode) {
    return Status::invalid_argument("--modes: all names every mode; give it by itself, as in --modes=all");
  }
  std::string labels;
  for (const ModeTraits& mode : kModeTraits) {
    if (mode.has_servers_alone()) {
      labels += fmt::format("{0}: and a consistency, as in {0}:bounded:4 or {0}:async:pipeline:2, ", mode.name);
    }
    if (!mode.has_servers_alone()) labels += fmt::format("{}, ", mode.name);
    if (!mode.sums_among_workers) continue;
    labels += fmt::format("{0}: and a collective, as in {0}:ring, ", mode.name);
    if (mode.shards_state()) labels += fmt::format("{0}:1, {0}:2, {0}:3, {0}:on-demand, ", mode.name);
    if (!mode.replicates_state) continue;
    labels += fmt::format(
        "{0}:sync-every:k (k from 2), {0}:gossip, {0}:gossip:k, {0}:gossip-async, {0}:gossip-async:k, "
        "{0}:pipeline:s, {0}:tensor:t, {0}:pipeline:s:tensor:t (s and t from 2), ",
        mode.name);
  }
  const bool is_bare = std::ranges::find(kModeTraits, label, &ModeTraits::name) != kModeTraits.end();
  const std::string nearest =
      is_bare ? fmt::format("{}:{}", label, RunRequest().consistency.to_string()) : nearest_name(label, known_labels());
  return Status::invalid_argument(
      fmt::format("--modes: '{}' must be all, {}or like: and a preset, as in like:horovod{}", label, labels,
                  nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

// Returns the config with one worker that trains the batches of all.
Result<RunRequest> as_local(RunRequest config, int workers) {
  if (workers > 1 && config.lr_schedule.linear_scaling) {
    return Status::invalid_argument(
        fmt::format("--lr-schedule={}: linear scales the rate with the workers, of which local has one; leave "
                    "linear out, or local out of --modes",
                    to_string(config.lr_schedule)));
  }
  config.mode = Mode::kLocal;
  config.launcher = LauncherKind::kLocal;
  config.workers = 1;
  config.stragglers = {};  // its one worker represents all
  config.shape.reset();
  config.faults = {};
  if (runs_command(config)) return config;
  if (!config.global_batch_size) config.global_batch_size = std::int64_t{batch_size_of(config)} * workers;
  // The time that is given is that of one worker's batch.
  if (config.compute && config.compute->step) *config.compute->step *= workers;
  return config;
}

// Returns the number of steps in "PREFIXk", if it is at least `least`.
std::optional<std::int64_t> steps_in(std::string_view way, std::string_view prefix, std::int64_t least) {
  if (!way.starts_with(prefix)) return std::nullopt;
  const auto steps = parse_number<std::int64_t>(std::string(way.substr(prefix.size())));
  return steps && *steps >= least && *steps <= kMostSyncEvery ? steps : std::nullopt;
}

// Sets the collective that is named, if it is one that --collective takes. Returns whether it is.
bool sets_collective(RunRequest& config, const std::string& name) {
  if (name == name_of(CollectiveKind::kMpi)) config.launcher = LauncherKind::kMpirun;
  const std::vector<OptionSpec> table = option_table();
  const auto option = std::ranges::find(table, "collective", &OptionSpec::name);
  return option->set(config, name).ok() && config.collective;
}

// Sets how replicas average weights, as in "sync-every:8" or "gossip". Returns whether there is such a way.
bool sets_averaging(RunRequest& config, const std::string& way) {
  if (const auto every = steps_in(way, "sync-every:", 2)) {
    config.sync_every = *every;
    return true;
  }
  for (const auto& [name, gossip] : {std::pair("gossip", Gossip::kInStep), std::pair("gossip-async", Gossip::kAsync)}) {
    const auto every = way == name ? std::optional<std::int64_t>(1) : steps_in(way, std::string(name) + ":", 1);
    if (!every) continue;
    config.sync_every = *every;
    config.gossip = gossip;
    return true;
  }
  return false;
}

// Sets into how many parts the model is divided, as in "pipeline:4" or "pipeline:2:tensor:2": options, and their
// values. Returns whether there is such a way.
bool sets_division(RunRequest& config, const std::string& way) {
  const std::vector<OptionSpec> table = option_table();
  std::istringstream words(way);
  bool is_set = false;
  for (std::string name, parts; std::getline(words, name, ':'); is_set = true) {
    if ((name != "pipeline" && name != "tensor") || !std::getline(words, parts, ':')) return false;
    if (parts == "1" || !std::ranges::find(table, name, &OptionSpec::name)->set(config, parts).ok()) return false;
  }
  return is_set && !way.ends_with(':');
}

// Sets the stage of a sharded state, as in "2", or the third with weights on demand. Returns whether there is such a
// one.
bool sets_stage(RunRequest& config, const std::string& way) {
  if (way == name_of(WeightGather::kOnDemand)) {
    config.stage = 3;
    config.gather = WeightGather::kOnDemand;
    return true;
  }
  const std::vector<OptionSpec> table = option_table();
  return std::ranges::find(table, "stage", &OptionSpec::name)->set(config, way).ok();
}

Result<RunRequest> as_preset(RunRequest config, const std::string& label) {
  if (runs_command(config)) {
    return Status::invalid_argument(
        fmt::format("--modes: {} sets a model and its update, which your own program decides ({}); name modes alone",
                    label, command_of(config)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Preset preset, open_preset(label.substr(kLikeMode.size())));
  SYNCOPATE_RETURN_IF_ERROR(apply_to_mode(preset, config));
  return config;
}

// A mode with several workers, and behind a colon a way of it.
Result<RunRequest> as_mode(RunRequest config, const std::string& label) {
  if (label.starts_with(kLikeMode)) return as_preset(std::move(config), label);
  const std::size_t colon = std::min(label.find(':'), label.size());
  const std::string name = label.substr(0, colon);
  const auto mode = std::ranges::find(kModeTraits, name, &ModeTraits::name);
  if (mode == kModeTraits.end() || !mode->is_distributed) return wrong_mode(label);
  config.mode = mode->mode;
  if (colon == label.size()) return mode->has_servers_alone() ? wrong_mode(label) : Result<RunRequest>(config);
  const std::string way = label.substr(colon + 1);
  if (mode->has_servers_alone()) {
    const std::size_t end = std::min(way.find(":pipeline:"), way.size());
    const Result<ps::Consistency> consistency = ps::Consistency::parse(way.substr(0, end));
    const bool is_split = way.find(":tensor:") != std::string::npos;  // which servers do not have
    if (!consistency.ok() || is_split || (end < way.size() && !sets_division(config, way.substr(end + 1)))) {
      return wrong_mode(label);
    }
    config.consistency = *consistency;
    return config;
  }
  const bool is_set = (mode->replicates_state && (sets_averaging(config, way) || sets_division(config, way))) ||
                      (mode->shards_state() && sets_stage(config, way)) ||
                      (mode->sums_among_workers && sets_collective(config, way));
  return is_set ? Result<RunRequest>(config) : wrong_mode(label);
}

}  // namespace

std::string division_of(const RunSettings& config) {
  const std::string stages = is_pipelined(config) ? fmt::format("pipeline:{}", config.pipeline) : "";
  const std::string parts = splits_layers(config) ? fmt::format("tensor:{}", config.tensor) : "";
  return stages + (stages.empty() || parts.empty() ? "" : ":") + parts;
}

Status check_modes(const std::string& modes) {
  std::istringstream labels(modes);
  for (std::string label; std::getline(labels, label, ',');) {
    if (label == "local") continue;
    SYNCOPATE_RETURN_IF_ERROR(label.starts_with(kLikeMode) ? open_preset(label.substr(kLikeMode.size())).status()
                                                           : as_mode(RunRequest(), label).status());
  }
  return {};
}

Result<std::vector<ComparedRun>> comparison_runs(const RunRequest& base, const std::string& modes) {
  RunRequest distributed = base;
  distributed.mode = Mode::kAllreduce;
  distributed.collective.reset();
  SYNCOPATE_RETURN_IF_ERROR(check(distributed));
  const int workers = workers_of(distributed);
  std::vector<ComparedRun> runs;
  std::istringstream labels(modes);
  for (std::string label; std::getline(labels, label, ',');) {
    SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest config,
                               label == "local" ? as_local(base, workers) : as_mode(base, label));
    for (const ComparedRun& other : runs) {
      if (other.label == label) {
        return Status::invalid_argument(
            fmt::format("--modes={}: names {} twice; every row is repeated by --repeat", modes, label));
      }
    }
    SYNCOPATE_RETURN_IF_ERROR(check(config));
    runs.push_back({.label = label, .config = config, .mode = label, .values = {}});
  }
  if (runs.empty()) return wrong_mode(modes);
  const bool is_impaired = std::ranges::any_of(runs, [](const auto& run) { return !run.config.faults.empty(); });
  if (!base.faults.empty() && !is_impaired) {
    return Status::invalid_argument(
        fmt::format("--fault={}: has no effect on local, whose one worker stands for all; leave it out or add "
                    "a mode",
                    base.faults.to_string()));
  }
  const bool is_slowed = std::ranges::any_of(runs, [](const auto& run) { return !run.config.stragglers.empty(); });
  if (!base.stragglers.empty() && !is_slowed) {
    return Status::invalid_argument(
        fmt::format("--straggler={}: has no effect on local, whose one worker stands for all; leave it out or "
                    "add a mode",
                    base.stragglers.to_string()));
  }
  return runs;
}

std::int64_t reference_samples(const RunRequest& base) {
  RunRequest synchronous = base;
  synchronous.mode = Mode::kAllreduce;
  synchronous.sync_every = 1;
  synchronous.outer_momentum = 0;
  synchronous.gossip = Gossip::kOff;
  return samples_an_update(synchronous);
}

void apply_rate_rule(std::vector<ComparedRun>& runs, RateRule rule, std::int64_t reference) {
  for (ComparedRun& run : runs) {
    if (runs_command(run.config)) continue;
    run.base_rate = learning_rate_of(run.config);
    run.config.learning_rate = ruled_rate(rule, run.base_rate, samples_an_update(run.config), reference);
  }
}

}  // namespace syncopate::experiments

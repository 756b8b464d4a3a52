#include "experiments/config/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "common/text/number.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/preset.h"
#include "experiments/config/resolution.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {
namespace {

Status wrong_mode(const std::string& label) {
  return Status::invalid_argument(fmt::format(
      "--modes: '{}' must be local, allreduce, allreduce: and a collective, as in allreduce:ring, "
      "allreduce:sync-every:k (k from 2), allreduce:gossip, allreduce:gossip:k, "
      "allreduce:gossip-async, allreduce:gossip-async:k, ps: and a consistency, as in ps:bounded:4, or like: "
      "and a preset, as in like:horovod",
      label));
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
  if (!runs_command(config) && !config.global_batch_size)
    config.global_batch_size = std::int64_t{batch_size_of(config)} * workers;
  return config;
}

// Returns the number of steps in "PREFIX:k", if it is at least `least`.
std::optional<std::int64_t> steps_in(std::string_view label, std::string_view prefix, std::int64_t least) {
  if (!label.starts_with(prefix)) return std::nullopt;
  const auto steps = parse_number<std::int64_t>(std::string(label.substr(prefix.size())));
  return steps && *steps >= least && *steps <= kMostSyncEvery ? steps : std::nullopt;
}

// Sets the collective that `label` names, as in allreduce:ring, if it is one that --collective takes. Returns whether
// it is.
bool sets_collective(RunRequest& config, const std::string& label) {
  constexpr std::string_view kPrefix = "allreduce:";
  if (!label.starts_with(kPrefix)) return false;
  const std::vector<OptionSpec> table = option_table();
  const auto option = std::ranges::find(table, "collective", &OptionSpec::name);
  return option->set(config, label.substr(kPrefix.size())).ok() && config.collective;
}

Result<RunRequest> as_mode(RunRequest config, const std::string& label) {
  constexpr std::string_view kPs = "ps:";
  if (label.starts_with(kPs)) {
    const Result<ps::Consistency> consistency = ps::Consistency::parse(std::string_view(label).substr(kPs.size()));
    if (!consistency.ok()) return wrong_mode(label);
    config.mode = Mode::kPs;
    config.consistency = *consistency;
    return config;
  }
  if (label.starts_with(kLikeMode) && runs_command(config)) {
    return Status::invalid_argument(
        fmt::format("--modes: {} sets a model and its update, which your own program decides ({}); name modes alone",
                    label, command_of(config)));
  }
  if (label.starts_with(kLikeMode)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Preset preset, open_preset(label.substr(kLikeMode.size())));
    SYNCOPATE_RETURN_IF_ERROR(apply_to_mode(preset, config));
    return config;
  }
  config.mode = Mode::kAllreduce;
  if (label == "allreduce:mpi") {
    config.collective = CollectiveKind::kMpi;
    config.launcher = LauncherKind::kMpirun;
    return config;
  }
  if (const auto every = steps_in(label, "allreduce:sync-every:", 2)) {
    config.sync_every = *every;
    return config;
  }
  for (const auto& [name, gossip] :
       {std::pair("allreduce:gossip", Gossip::kInStep), std::pair("allreduce:gossip-async", Gossip::kAsync)}) {
    const auto every = label == name ? std::optional<std::int64_t>(1) : steps_in(label, std::string(name) + ":", 1);
    if (!every) continue;
    config.sync_every = *every;
    config.gossip = gossip;
    return config;
  }
  if (label == "allreduce") return config;
  return sets_collective(config, label) ? Result<RunRequest>(config) : wrong_mode(label);
}

}  // namespace

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

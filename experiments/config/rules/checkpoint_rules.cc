#include "experiments/config/rules/checkpoint_rules.h"

#include <fmt/format.h>

namespace syncopate::experiments {
namespace {

// Returns the option as it was given.
std::string option_of(const ResolvedRun& config) {
  return config.checkpoint_every ? "--checkpoint-every=" + config.checkpoint_every->to_string()
                                 : "--resume=" + *config.resume;
}

}  // namespace

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
  if (config.mode == Mode::kPs && config.consistency.updates_together() && config.checkpoint_every &&
      config.checkpoint_every->steps % config.consistency.period() != 0) {
    return Status::invalid_argument(
        fmt::format("{}: must be a multiple of {}, the steps from one meeting of --consistency={} to the next", option,
                    config.consistency.period(), config.consistency.to_string()));
  }
  return {};
}

}  // namespace syncopate::experiments

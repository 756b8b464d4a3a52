#include "experiments/lab/report/mode_of.h"

#include "experiments/config/comparison.h"

namespace syncopate::experiments {

std::string mode_of(const ResolvedRun& config) {
  const std::string mode = name_of(config.mode);
  const std::string division = divides_model(config) ? ":" + division_of(config) : "";
  if (has_servers_alone(config)) return mode + ":" + config.consistency.to_string() + division;
  if (gathers_on_demand(config)) return mode + ":" + name_of(config.gather);
  if (shards_state(config)) return mode + ":" + std::to_string(config.stage);
  if (!division.empty()) return mode + division;
  return averages_weights(config) ? mode + ":" + averaging_of(config) : mode;
}

}  // namespace syncopate::experiments

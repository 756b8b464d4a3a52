#include "experiments/lab/report/mode_of.h"

#include "experiments/config/comparison.h"

namespace syncopate::experiments {

std::string mode_of(const ResolvedRun& config) {
  if (has_servers(config)) return "ps:" + config.consistency.to_string();
  if (averages_weights(config)) return "allreduce:" + averaging_of(config);
  return name_of(config.mode);
}

}  // namespace syncopate::experiments

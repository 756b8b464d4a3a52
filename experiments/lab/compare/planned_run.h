// PlannedRun: a row of a comparison whose run is resolved.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/config/comparison.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

struct PlannedRun {
  std::string label, mode;                                  // as ComparedRun has them
  std::vector<std::pair<std::string, std::string>> values;  // as ComparedRun has them
  double base_rate = 0;                                     // as ComparedRun has it
  ResolvedRun config;
};

// Returns the row `run`, which comes to `config`.
inline PlannedRun planned(const ComparedRun& run, ResolvedRun config) {
  return {run.label, run.mode, run.values, run.base_rate, std::move(config)};
}

}  // namespace syncopate::experiments

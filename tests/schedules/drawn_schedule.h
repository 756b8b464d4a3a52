// DrawnSchedule: a small job in some mode, and what happens to it, drawn from a seed: the flags of a run that takes
// place in a simulated cluster, and what they come to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

struct DrawnSchedule {
  std::uint64_t seed = 0;
  std::vector<std::string> flags;  // of run_experiment, without those that say where files lie
  ResolvedRun run;
  ParamLayout layout;
  std::size_t local_state_size = 0;
  std::int64_t total_steps = 0;

  // The command that repeats the run.
  std::string command() const;
};

// The same seed gives the same schedule. What is drawn goes through the command line's own parser and rules; what they
// refuse is drawn again. Generated data lies in `data_directory`.
DrawnSchedule draw_schedule(std::uint64_t seed, const std::string& data_directory);

// The same job when nothing happens to it.
DrawnSchedule without_faults(DrawnSchedule schedule);

// The same, and where nothing is done against it either: alike in all that its weights
// may depend on where workers wait for each other, and plain in everything else.
DrawnSchedule plain(DrawnSchedule schedule);

}  // namespace syncopate::experiments

// Reads back what a finished run says of itself: summary.json and environment.json (results/README.md is their schema).
// Pure: texts in, figures out. The files are not trusted: a malformed one is an error that says what is wrong, and
// names no path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

struct RunSummary {
  std::string outcome;               // "completed", or what ended it early
  std::vector<std::string> events;   // what happened and was survived
  std::string device;                // the chief's GPU, as its driver reports it; empty: none
  std::int64_t parameters = 0;       // number of the model's parameters
  std::int64_t steps_per_epoch = 0;  // of one worker; 0: not known
  std::vector<RunReport> reports;    // by repeat
  std::vector<std::uint64_t> seeds;  // by repeat; empty: not known
  // On a simulated cluster, the models of its network and of a worker's compute; else empty.
  std::string simulated_network, simulated_compute;
  // If the run has gone on from a checkpoint: its step, and the seconds of training until then, if it tells them.
  std::optional<std::int64_t> resumed_at = {};
  std::optional<double> resumed_seconds = {};
  std::string not_finite;           // what was the first NaN or infinity, in a sentence; empty: none
  bool counts_from_resume = false;  // its record is of a version whose samples and times counted from that step
};

// Reads summary.json. Fails with data loss if it is incomplete or malformed.
Result<RunSummary> read_summary(std::string_view json);

class JsonMembers;
Environment environment_of(const JsonMembers& members);

// Reads from environment.json what it says about the host and the program. Fails with data loss if it is incomplete.
Result<Environment> read_environment(std::string_view json);

}  // namespace syncopate::experiments

// What a person reads at the end of a run. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/run_config.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {

// "ps async, 4 workers, 2 servers, shm": what ran.
std::string describe(const RunConfig& config);
// "emulated, 1 Gb/s each way a process"; empty where nothing is emulated.
std::string describe_link(const RunConfig& config);

// `config` is resolved; `reports` has one report for each repeat and may be empty.
std::string summary_text(const RunConfig& config, std::span<const RunReport> reports, const RunFacts& facts);

}  // namespace syncopate::experiments

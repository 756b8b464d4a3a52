// The text that a person reads at the end of a run. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {

// Returns what ran: "ps async, 4 workers, 2 servers, shm".
std::string describe(const ResolvedRun& config);
// Returns "emulated, 1 Gb/s each way a process"; empty if nothing is emulated.
std::string describe_link(const ResolvedRun& config);
// Returns how far times behind this link are from a real one's; empty if that is not known to matter.
std::string link_caution(const ResolvedRun& config);

// Returns the summary. `config` must be resolved; `reports` has one report for each repeat and may be empty.
std::string summary_text(const ResolvedRun& config, std::span<const RunReport> reports, const RunFacts& facts);

}  // namespace syncopate::experiments

// What a person reads at the end: the summary of one run, and modes side by side. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/run_config.h"
#include "experiments/report/run_report.h"
#include "experiments/report/summary_json.h"

namespace syncopate::experiments {

// "ps async, 4 workers, 2 servers, shm": what ran.
std::string describe(const RunConfig& config);
// "emulated, 1 Gb/s each way a process"; empty where nothing is emulated.
std::string describe_link(const RunConfig& config);

// `config` is resolved; `reports` has one report for each repeat and may be empty.
std::string summary_text(const RunConfig& config, std::span<const RunReport> reports, const RunFacts& facts);

struct ComparedResult {
  std::string label;
  std::vector<RunReport> reports;  // one for each repeat
};

// The noise floor of throughput, as a fraction: how far runs of one and the same configuration lay apart, from the
// slowest to the fastest of both halves of an A/A pair, over their median. Differences below it are no differences.
double noise_floor(std::span<const RunReport> first, std::span<const RunReport> again);

// A row for each result, ratios to the first, and the noise floor. A ratio within it of 1 is marked.
std::string comparison_text(std::span<const ComparedResult> results, double noise_floor);

}  // namespace syncopate::experiments

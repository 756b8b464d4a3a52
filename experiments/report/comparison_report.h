// Runs side by side: as text for a terminal, as a table for programs, as a page with charts for a browser. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/report/run_report.h"

namespace syncopate::experiments {

// One row: a mode, or a mode with one value of the option that is varied.
struct ComparedResult {
  std::string label;                           // "allreduce batch-size=32"
  std::string mode;                            // "allreduce"
  std::string value;                           // "32"; empty where nothing is varied, or has an effect in this mode
  std::int64_t parameters = 0;                 // of the model
  std::vector<RunReport> reports;              // one for each repeat
  std::vector<std::vector<EvalRecord>> evals;  // likewise
};

// The noise floor of throughput, as a fraction: how far runs of one and the same configuration lay apart, from the
// slowest to the fastest of both halves of an A/A pair, over their median. Differences below it are no differences.
double noise_floor(std::span<const RunReport> first, std::span<const RunReport> again);

// A row for each result, ratios to the first, and the noise floor. A ratio within it of 1 is marked.
std::string comparison_text(std::span<const ComparedResult> results, double noise_floor);

// comparison.csv (results/README.md explains its columns): a row for each repeat of each result.
std::string comparison_csv(std::span<const ComparedResult> results);

// What a page says beside the figures.
struct ComparisonPage {
  std::string job;     // what was run: "mlp on digits, 4 workers"
  std::string option;  // that was varied; empty for none
  double noise_floor = 0;
};

// comparison.html: the table, accuracy over time, what travelled against what it bought, and, where a number was
// varied, throughput, bytes and memory over it. Needs nothing beside itself.
std::string comparison_html(std::span<const ComparedResult> results, const ComparisonPage& page);

}  // namespace syncopate::experiments

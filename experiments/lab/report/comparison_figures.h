// What the rounds of a comparison come to: the figures that its tables, files and charts show alike. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/comparison_report.h"
#include "experiments/lab/report/paired_comparison.h"

namespace syncopate::experiments {

// Of one row. Empty, or of no rounds, where nothing was measured.
struct RowFigures {
  std::size_t rounds = 0;                // that came to their end
  Estimate samples_per_second;           // of the whole job
  Difference speed;                      // its ratio to the first row's
  std::optional<double> noise;           // of it, between successive rounds of this row, as a fraction
  Estimate training_seconds;             //
  std::optional<double> window_samples;  // a second, in the steady window; this and the following: median over rounds
  std::optional<double> step_ms;         // median step
  std::optional<double> wait;            // part of a mean step that was exposed wait, 0 to 1
  std::optional<double> megabytes;       // a step and worker, out and in
  std::optional<double> codec_ms;        // mean of a step
  std::optional<double> staleness;       // mean of a step, in updates (gossip-async: averages)
  std::optional<double> memory_mb;       // peaks of all processes together
  Estimate quality;                      // at the end, over rounds, each of which has its own seed
  Difference quality_gain;               // its difference from the first row's
  std::optional<double> loss;            // at the end, on the test set; mean over rounds
  Estimate to_target;                    // seconds of training, of the rounds that reached the target
  Difference target_ratio;               // their ratio to the first row's
  std::optional<double> resolution;      // seconds of training between evaluations around the target; median
};

struct ComparisonFigures {
  std::vector<RowFigures> rows;
  std::string quality = "accuracy";  // what quality is of: headline_name()
  bool has_codec = false;            // whether any run has compressed
  std::size_t fewest_rounds = 0;     // of all rows
  std::size_t most_rounds = 0;
};

ComparisonFigures figures_of(const ComparisonReport& report);

// "faster", "slower", "no difference shown", "not judged": with the words for higher and lower.
std::string words_of(Verdict verdict, const std::string& higher, const std::string& lower);

// What a reader must know to believe the figures, a sentence each: how they were judged, what was not, and what else
// the machine was busy with.
std::vector<std::string> caveats(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments

// ComparisonFigures: the figures of a comparison's rounds, for its tables, files and charts. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/comparison_report.h"
#include "experiments/lab/report/paired_comparison.h"

namespace syncopate::experiments {

// Exact figures that lie no further apart, as a fraction, are called alike.
inline constexpr double kExactlyAlike = 1e-3;

// The figures of one row. They are empty, or cover no rounds, where nothing was measured.
struct RowFigures {
  std::size_t rounds = 0;       // rounds that completed
  Estimate samples_per_second;  // of the whole job
  Difference speed;             // ratio to the first row's
  std::optional<double> noise;  // noise between successive rounds of this row, as a fraction
  Estimate training_seconds;    //
  // samples per second in the steady window; this and the following are medians over rounds
  std::optional<double> window_samples;
  std::optional<double> step_ms;           // median step
  std::optional<double> wait;              // fraction of a mean step that was exposed wait, 0 to 1
  std::optional<double> megabytes;         // sent and received per step and worker
  std::optional<double> server_megabytes;  // of the server that has most, in a step of all workers; ps only
  std::optional<double> codec_ms;          // mean per step
  std::optional<double> staleness;         // mean per step, in updates (gossip-async: averages)
  std::optional<double> memory_mb;         // sum of the peaks of all processes
  std::optional<double> goodput;           // share of the workers' time, 0 to 1
  Estimate quality;                        // at the end, over rounds, each with its own seed
  Difference quality_gain;                 // difference from the first row's
  std::optional<double> loss;              // at the end, on the test set; mean over rounds
  Estimate to_target;                      // seconds of training, over the rounds that reached the target
  Difference target_ratio;                 // ratio to the first row's
  std::optional<double> cost;              // of the training, in the currency of the prices; mean over rounds
  std::optional<double> cost_to_target;    // the same until the target
  std::optional<double> resolution;        // seconds of training between evaluations around the target; median
};

struct ComparisonFigures {
  std::vector<RowFigures> rows;
  std::string quality = "accuracy";  // the name of the quality figure: headline_name()
  bool has_codec = false;            // whether any run has used compression
  std::size_t fewest_rounds = 0;     // least number of rounds of any row
  std::size_t most_rounds = 0;
  // The simulation draws nothing that moves its times: that is certain, or each row has two rounds or more, and they
  // are equal.
  bool is_exact = false;
};

// Returns the row's samples per second of the whole job, by round.
Series throughput_series(const ComparedRow& row);
// Returns the figure of `ComparisonFigures::quality`, by round.
Series quality_series(const ComparedRow& row);

// Returns the round of median throughput, the slower of two in the middle, which stands for the row; none if none has
// completed.
std::optional<std::size_t> middle_round(const ComparedRow& row);

ComparisonFigures figures_of(const ComparisonReport& report);

}  // namespace syncopate::experiments

// StepRow: what a run's record says of one step of one worker, and the reader of that record. Pure: texts in, figures
// out. The file is not trusted: a malformed one is an error that says what is wrong, and names no path.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// Times are in milliseconds, and as results/README.md explains the columns of steps.csv.
struct StepRow {
  int worker = 0;
  std::int64_t step = 0;
  double end = 0;  // since training began
  double total = 0;
  double data = 0;
  double forward = 0;
  double backward = 0;
  double straggle = 0;
  double wait = 0;
  double optimizer = 0;
  double communication = 0;
  double codec = 0;
  double backward_codec = 0;
  double bytes_out = 0;
  double bytes_in = 0;
  double dropped = 0;
  double samples = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // of its batch; no number: not recorded, or diverged
  std::optional<double> core_wait = {};                    // empty: not recorded
  double compute_core_wait = 0;
  int last_shard = -1;  // -1: none, or not recorded
  double last_shard_alone = 0;
};

// Reads the steps of one repeat from steps.csv, in the order in which they were recorded. Columns of later versions are
// ignored; those that older runs lack are as if nothing had been recorded. Fails with data loss if a line is malformed
// or a column is missing that all runs have.
Result<std::vector<StepRow>> read_steps(std::string_view csv, int repeat);

}  // namespace syncopate::experiments

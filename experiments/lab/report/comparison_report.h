// ComparisonReport: what a comparison has measured, as plain data. The comparison fills it in as its runs end;
// comparison_text.h and comparison_files.h show it. It may be shown at any time: what has not run is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/cluster/host/environment.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

// One configuration: a mode, or a mode with one value of each option that is varied.
struct ComparedRow {
  std::string label;                                        // "allreduce batch-size=32"
  std::string mode;                                         // "allreduce"
  std::vector<std::pair<std::string, std::string>> values;  // of the varied options that have an effect: {name, value}
  double rate = 0;                                          // --learning-rate that it ran with; 0: not known
  double updates_a_pass = 0;                                // in one pass of the training set; 0: not known
  std::int64_t parameters = 0;                              // of the model
  // One entry a round; these four are as long as each other. Empty: not run, or not to its end.
  std::vector<std::optional<RunReport>> rounds;
  std::vector<std::vector<EvalRecord>> evals;
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> folders;  // where its results lie
};

// One rate that --tune-rate has tried for one row.
struct RateTrial {
  std::string label;                  // of the row
  double rate = 0;                    // --learning-rate
  std::vector<double> quality, loss;  // at the end, on the test set, by seed; a diverged run's are no numbers
};

struct ComparisonReport {
  std::string job;          // and what was varied: "mlp on digits, 4 workers, servers varied"
  std::string command;      // as it was typed
  std::string config_toml;  // what the rows share
  std::string started;      // "2026-03-01 12:00:00 UTC"
  std::string version;      // of the program
  Environment machine;      // of the host that it was started on
  std::string rate_rule;    // of --rate-rule; empty: not said
  double target = 0;        // of --target-accuracy; 0: none
  bool in_rounds = true;    // false: finished runs, which did not run in turns, so that no round pairs them
  std::size_t rounds_asked = 1;
  std::vector<std::string> varied;              // names of options
  std::vector<ComparedRow> rows;                // the first is the baseline
  std::vector<std::vector<std::size_t>> order;  // by round: rows as they ran
  std::vector<RateTrial> trials;
  std::vector<std::string> left_out;  // a line for each row that cannot run: which, and why
  std::vector<std::string> notes;     // what a reader must know beside the figures
  std::string outcome = "completed";  // or what ended it before its time
};

// The reports of the rounds that came to their end, in order.
std::vector<RunReport> finished_rounds(const ComparedRow& row);

}  // namespace syncopate::experiments

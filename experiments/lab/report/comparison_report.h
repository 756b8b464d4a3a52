// ComparisonReport: what a comparison has measured, as plain data. The comparison fills it in as its runs end, and
// comparison_tables.h and comparison_files.h show it. It may be shown at any time: fields of what has not run are
// empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/cluster/host/environment.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/training_piece.h"
#include "prediction/host_prices.h"

namespace syncopate::experiments {

// Where the time of a row's mean step went (docs/why.md), in the round of median throughput.
struct StepParts {
  double ideal_ms = 0, measured_ms = 0;
  std::vector<std::pair<std::string, double>> parts;  // {name, ms}; with the ideal step they add up to the measured one
  std::string why;                                    // in sentences, with what to change first
  double samples_per_second = 0;                      // in the steady window
  std::optional<double> predicted;  // samples/s by closed form, with the ideal step as computing; none: has no form
};

// One configuration: a mode, or a mode with one value of each option that is varied.
struct ComparedRow {
  std::string label;                                        // "allreduce batch-size=32"
  std::string mode;                                         // "allreduce"
  std::vector<std::pair<std::string, std::string>> values;  // the varied options that have an effect: {name, value}
  double rate = 0;                                          // the --learning-rate that it ran with; 0: not known
  int workers = 0, servers = 0;                             // processes of each; 0: not known, or none
  int batch_size = 0;                                       // samples of a step of one worker; 0: not known
  double updates_a_pass = 0;                                // updates in one pass of the training set; 0: not known
  std::int64_t parameters = 0;                              // number of the model's parameters
  // One entry per round; these four have the same length. An entry is empty if the round did not run or did not
  // complete.
  std::vector<std::optional<RunReport>> rounds;
  std::vector<std::vector<EvalRecord>> evals;
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> folders;  // where the results of each round lie
  std::optional<StepParts> step;     // none: not known, or not known yet
  // The course of the training loss in the round of median throughput; empty: not known, or not known yet.
  std::vector<TrainingPiece> training;
};

// One rate that --tune-rate has tried for one row.
struct RateTrial {
  std::string label;                  // label of the row
  double rate = 0;                    // --learning-rate
  std::vector<double> quality, loss;  // at the end, on the test set, by seed; not a number for a diverged run
};

struct ComparisonReport {
  std::string job;          // the job and what was varied: "mlp on digits, 4 workers, servers varied"
  std::string command;      // as it was typed
  std::string config_toml;  // the settings that the rows share
  std::string started;      // "2026-03-01 12:00:00 UTC"
  std::string version;      // version of the program
  Environment machine;      // the host that it was started on
  std::string rate_rule;    // --rate-rule; empty: not known
  double target = 0;        // --target-accuracy; 0: none
  std::optional<prediction::HostPrices> prices;  // of a process, for an hour
  bool simulated = false;                        // whether all times are virtual
  bool is_certain = false;                       // whether every round gives them anew (times_are_certain)
  bool in_rounds = true;  // false: finished runs, which did not alternate in time, so that no round pairs them
  std::size_t rounds_asked = 1;
  std::size_t analyses = 1;                     // Judging::analyses
  double margin = 0;                            // a difference that does not matter, as a part; 0: none is said
  std::vector<std::string> varied;              // names of options
  std::vector<ComparedRow> rows;                // the first is the baseline
  std::vector<std::vector<std::size_t>> order;  // for each round, the rows in the order in which they ran
  std::vector<RateTrial> trials;
  std::vector<std::string> left_out;  // a line for each row that cannot run, with the reason
  std::vector<std::string> notes;     // what a reader must know besides the figures
  std::string outcome = "completed";  // or what ended it early
};

// Returns the reports of the completed rounds, in order.
std::vector<RunReport> finished_rounds(const ComparedRow& row);

}  // namespace syncopate::experiments

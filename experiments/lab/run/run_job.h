// run_job: a run from its configuration to its results, repeats and all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "experiments/cluster/control/snapshot_layout.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/config/run_config.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/summary_json.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/survey.h"

namespace syncopate::experiments {

struct JobResult {
  ExitCode exit = ExitCode::kSuccess;
  std::string verdict;             // what ended it before its time, if anything did
  RunConfig config;                // resolved: what ran
  std::vector<RunReport> reports;  // one for each repeat that came to a report
  // Of each of these, its evaluations.
  std::vector<std::vector<EvalRecord>> evals;
  RunFacts facts;
  // The final ones of the last repeat, and of row-sparse tables the rows that are among them, laid out as
  // snapshot_layout says; empty if it did not get there.
  std::vector<float> weights;
  TableKeys rows;
};

// Runs one job without showing its progress, as run_job does.
using JobRunner = std::function<JobResult(const RunConfig& config)>;

// Checks and prepares all that can fail before anything is launched, runs every repeat, writes the results. `config`
// has been validated, and `survey` is of its hosts. Shows progress on `console`; the summary and the verdict are the
// caller's to show.
JobResult run_job(const RunConfig& config, const Survey& survey, Interrupts& interrupts, Console& console);

// What the line begins with in which dry_run_text says what keeps the run from training as things are.
inline constexpr std::string_view kDryRunHindrance = "\nas things are, ";

// For --dry-run: the processes that would be launched and, under ps, what lies on which shard. Invalid argument where
// these machines cannot run it.
Result<std::string> dry_run_text(const RunConfig& config, const Survey& survey);

}  // namespace syncopate::experiments

// run_job: carries a run from its configuration to its results, with all repeats.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "experiments/cluster/control/weights_snapshot.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/cluster/simulated/solo_times.h"
#include "experiments/config/resolved_run.h"
#include "experiments/config/run_request.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/summary_json.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/survey.h"

namespace syncopate::experiments {

struct JobResult {
  ExitCode exit = ExitCode::kSuccess;
  std::string verdict;             // what ended it early, if anything did
  ResolvedRun config;              // what ran
  std::vector<RunReport> reports;  // one for each repeat that produced a report
  // The evaluations of each of these.
  std::vector<std::vector<EvalRecord>> evals;
  RunFacts facts;
  // The final weights of the last repeat, and which rows of row-sparse tables are among them, laid out as
  // snapshot_layout says. Empty if the run did not get that far.
  std::vector<float> weights;
  TableKeys rows;
};

// Returns whether something in the run was not a finite number, or the loss that it ended with is not.
bool has_diverged(const JobResult& result);

// Returns what a request comes to on the machines that there are, as resolve_on() does.
using Resolver = std::function<Result<ResolvedRun>(const RunRequest& request)>;

// Runs one job like run_job, without showing its progress.
using JobRunner = std::function<JobResult(const ResolvedRun& config)>;

// Checks and prepares everything that can fail before anything is launched, runs every repeat, and writes the results.
// `survey` must be that of its hosts; `solo` serves all jobs that are compared. Shows progress on `console`; the caller
// shows the summary and the verdict.
JobResult run_job(const ResolvedRun& config, const Survey& survey, SoloTimes& solo, Interrupts& interrupts,
                  Console& console);

// The beginning of the line in which dry_run_text says what keeps the run from training in the present circumstances.
inline constexpr std::string_view kDryRunHindrance = "\nas things are, ";

// For --dry-run: returns the processes that would be launched and, under ps, what each shard holds. Fails with invalid
// argument if it cannot run.
Result<std::string> dry_run_text(const ResolvedRun& config, const Survey& survey);

}  // namespace syncopate::experiments

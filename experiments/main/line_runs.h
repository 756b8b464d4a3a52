// The runs that a command line asks for: where they run, what they are, and how they are carried out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/plan/placement.h"
#include "experiments/cluster/tasks/task_group.h"
#include "experiments/config/command_line.h"
#include "experiments/lab/compare/compare.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// Whether the line asks for several runs, side by side.
bool compares(const CommandLine& command);

// Finds out what the hosts have. Runs of one comparison have the same hosts, except local, and where they are numbered
// the first of the same. A dry run does not ask other hosts for what its plan does not show.
Result<Survey> survey_for(const CommandLine& command, TaskGroup& tasks);

// Returns what will run: the run, or the rows of the comparison. Checks that every option given by name has an effect
// on the devices that were found.
Result<std::vector<ResolvedRun>> resolve_all(CommandLine& command, const Machines& machines);

// Sets who may read this process's memory, and checks whether mpirun may be started.
Status settle_rights(const CommandLine& command);

// Returns the comparison of the line, whose rows will run as `resolved`.
ComparisonJob job_of(const CommandLine& command, std::vector<ResolvedRun> resolved);

// Carries out runs of a command that shows no progress of theirs.
class QuietRuns {
 public:
  explicit QuietRuns(Survey survey) : survey_(std::move(survey)) {}

  JobResult run(const ResolvedRun& config) {
    Console quiet(true);
    return run_job(config, survey_, solo_, interrupts_, quiet);
  }
  Interrupts& interrupts() { return interrupts_; }
  JobRunner runner() {
    return [this](const ResolvedRun& config) { return run(config); };
  }
  Resolver resolver() const {
    return [this](const RunRequest& request) { return resolve_on(machines_of(survey_), request, calendar_stamp()); };
  }

 private:
  const Survey survey_;
  SoloTimes solo_;
  Interrupts interrupts_;
};

// Simulated runs are carried out `at_once` in processes of their own, real ones one after the other.
ExitCode run_comparison(const ComparisonJob& job, const Survey& survey, int at_once);

}  // namespace syncopate::experiments

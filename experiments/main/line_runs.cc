#include "experiments/main/line_runs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/text/format.h"
#include "experiments/cluster/process/mpirun_agent.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/compare/cell_pool.h"
#include "experiments/main/ending.h"

namespace syncopate::experiments {
namespace {

bool starts_mpirun(const CommandLine& command) {
  const auto by_mpirun = [](const RunRequest& config) { return config.launcher == LauncherKind::kMpirun; };
  return compares(command) ? std::ranges::any_of(command.runs, by_mpirun, &ComparedRun::config)
                           : by_mpirun(command.config);
}

std::vector<PlannedRun> planned_rows(const std::vector<ComparedRun>& rows, std::vector<ResolvedRun> resolved) {
  std::vector<PlannedRun> runs;
  for (std::size_t row = 0; row < rows.size(); ++row) runs.push_back(planned(rows[row], std::move(resolved[row])));
  return runs;
}

}  // namespace

bool compares(const CommandLine& command) {
  return command.action == CommandLine::Action::kCompare || command.action == CommandLine::Action::kStudy;
}

Result<std::vector<ResolvedRun>> resolve_all(CommandLine& command, const Machines& machines) {
  std::vector<ResolvedRun> resolved;
  if (compares(command)) {
    SYNCOPATE_ASSIGN_OR_RETURN(resolved, resolve_together(machines, command.config, command.runs, calendar_stamp()));
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(ResolvedRun run, resolve_on(machines, command.config, calendar_stamp()));
    resolved.push_back(std::move(run));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_effect(command.given, resolved));
  return resolved;
}

Result<Survey> survey_for(const CommandLine& command, TaskGroup& tasks) {
  if (command.place) {
    if (!command.config.dry_run || !command.place->one_host) {
      SYNCOPATE_ASSIGN_OR_RETURN(
          tasks, TaskGroup::gather(*command.place, {.with_gpus = command.config.device != DeviceKind::kCpu,
                                                    .timeout = from_seconds(command.config.timeout_seconds)}));
    }
    return survey_of_tasks(command.config, *command.place, tasks);
  }
  const RunRequest* config = &command.config;
  for (const ComparedRun& run : command.runs) {
    if (!spans_hosts(run.config)) continue;
    const auto hosts = [](const RunRequest& request) { return hosts_of(presumed(request)).size(); };
    if (!spans_hosts(*config) || hosts(run.config) > hosts(*config)) config = &run.config;
  }
  const bool asks_nothing = config->device == DeviceKind::kCpu || config->cluster == ClusterKind::kNamespaces;
  if (config->dry_run && asks_nothing) return Survey();
  return survey(*config);
}

Status settle_rights(const CommandLine& command) {
  if (dumps_are_allowed()) {
    complain("SYNCOPATE_ALLOW_DUMPS=1: core dumps and debuggers can show the run's keys");
  }
  if (!starts_mpirun(command)) {
    keep_memory_private();
    return {};
  }
  return command.config.dry_run ? Status() : check_mpirun_allows(geteuid());
}

ComparisonJob job_of(const CommandLine& command, std::vector<ResolvedRun> resolved) {
  return {.base = command.config,
          .runs = planned_rows(command.runs, std::move(resolved)),
          .varied = command.varied,
          .left_out = command.left_out,
          .rate_rule = command.rate_rule,
          .reference_samples = command.reference_samples,
          .tune_rate = command.tune_rate,
          .command = command.typed,
          .auto_rounds = command.auto_rounds,
          .name = command.action == CommandLine::Action::kStudy ? "study" : "compare",
          .prices = command.prices,
          .plots = command.plot};
}

ExitCode run_comparison(const ComparisonJob& job, const Survey& survey, int at_once) {
  QuietRuns runs(survey);
  const SteadyClock clock;
  if (job.base.cluster != ClusterKind::kSimulated || at_once < 2) {
    return compare(job, runs.resolver(), runs.runner(), clock);
  }
  CellPool cells(own_program(), static_cast<std::size_t>(at_once), runs.interrupts());
  const JobRunner runner = [&](const ResolvedRun& config) {
    return cells.expects(config) ? cells.run(config) : runs.run(config);
  };
  return compare(job, runs.resolver(), runner, clock,
                 [&](const auto& ahead, const std::string& folder) { return cells.expect(ahead, folder); });
}

}  // namespace syncopate::experiments

// The program of Syncopate: run_experiment for a person, and every process that a run launches, except workers on GPUs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/os/exhaustion.h"
#include "common/os/resource_limits.h"
#include "common/os/signal_actions.h"
#include "common/text/log.h"
#include "common/text/printable_text.h"
#include "experiments/cluster/command/command_start.h"
#include "experiments/cluster/command/relay.h"
#include "experiments/cluster/doctor/doctor_agent.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/namespaces/namespace_hosts.h"
#include "experiments/cluster/process/guard.h"
#include "experiments/cluster/process/mpirun_agent.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/probe.h"
#include "experiments/cluster/process/process_main.h"
#include "experiments/cluster/tasks/launcher_watch.h"
#include "experiments/cluster/tasks/task_main.h"
#include "experiments/cluster/tasks/task_shell.h"
#include "experiments/config/bare_quantities.h"
#include "experiments/config/command_line.h"
#include "experiments/config/help_text.h"
#include "experiments/lab/calibrate/calibrate.h"
#include "experiments/lab/calibrate/profile_model.h"
#include "experiments/lab/compare/cell_process.h"
#include "experiments/lab/compare/compare.h"
#include "experiments/lab/compare/finished_runs.h"
#include "experiments/lab/report/evaluation_charts.h"
#include "experiments/lab/report/kept_results.h"
#include "experiments/lab/report/plot.h"
#include "experiments/lab/report/results_folder.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run/auto_resume.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/foreign_paths.h"
#include "experiments/lab/run/run_job.h"
#include "experiments/lab/run/running_runs.h"
#include "experiments/lab/submit/submission_text.h"
#include "experiments/main/answers.h"
#include "experiments/main/ending.h"
#include "experiments/main/line_runs.h"

namespace syncopate::experiments {
namespace {

// Threads that the coordinator needs. ZeroMQ ends a program that cannot create one.
constexpr int kThreads = 8;

// For --resume=auto: sees what is there, and makes room for the run. Returns nothing if the run is completed already.
Result<std::optional<AutoResume>> take_up(const ResolvedRun& config) {
  SYNCOPATE_ASSIGN_OR_RETURN(AutoResume found, AutoResume::look(config));
  if (!found.line().empty()) write_out(stdout, printable_lines(found.line()) + "\n");
  if (found.kind() == AutoResume::Kind::kCompleted) return std::optional<AutoResume>();
  if (!config.dry_run) SYNCOPATE_RETURN_IF_ERROR(found.set_aside());
  return std::optional<AutoResume>(std::move(found));
}

ExitCode run_one(const ResolvedRun& config, const Survey& survey, Interrupts& interrupts, bool plots) {
  std::optional<AutoResume> taken_up;  // nobody else writes there until the run has ended
  if (resumes_here(config)) {
    Result<std::optional<AutoResume>> found = take_up(config);
    if (!found.ok()) return failed(found.status());
    if (!*found) return ExitCode::kSuccess;
    taken_up.emplace(std::move(**found));
  }
  if (config.dry_run) {
    const Result<std::string> text = dry_run_text(config, survey);
    if (!text.ok()) return failed(text.status());
    write_out(stdout, *text);
    return ExitCode::kSuccess;
  }
  Console console;
  SoloTimes solo;
  const JobResult result = run_job(config, survey, solo, interrupts, console);
  if (!result.reports.empty()) console.say(summary_text(result.config, result.reports, result.facts));
  if (plots) console.draw(plots_of(evaluation_charts(result.evals), terminal_plot_style()));
  if (!result.verdict.empty()) console.warn("run_experiment: " + result.verdict);
  return result.exit;
}

// Shows a comparison's rows, and fails if its runs would fail.
ExitCode plan_comparison(const ComparisonJob& job, const Survey& survey) {
  std::string hindrance;
  for (const PlannedRun& run : job.runs) {
    const Result<std::string> text = dry_run_text(run.config, survey);
    if (!text.ok()) {
      complain(fmt::format("{}: {}", run.label, text.status().message()));
      return exit_code_of(text.status());
    }
    const std::size_t begin = text->find(kDryRunHindrance);
    if (begin != std::string::npos) hindrance = text->substr(begin);
  }
  write_out(stdout, comparison_plan(job) + hindrance);
  return ExitCode::kSuccess;
}

// Lets `ps` and `stop` find this run. One that cannot be found runs all the same.
std::unique_ptr<RunningRuns::Entry> listed(const char* command, const ResolvedRun& config, const std::string& folder) {
  const Result<RunningRuns> runs = RunningRuns::of_user();
  Result<std::unique_ptr<RunningRuns::Entry>> entry =
      runs.ok() ? runs->add({.pid = getpid(),
                             .command = command,
                             .job = fmt::format("{}: {}", describe(config), model_on_data(config)),
                             .results = std::filesystem::absolute(folder).lexically_normal().string(),
                             .started = calendar_text(calendar_stamp())})
                : Result<std::unique_ptr<RunningRuns::Entry>>(runs.status());
  if (entry.ok()) return std::move(*entry);
  complain(fmt::format("ps and stop will not find this run: {}", entry.status().message()));
  return nullptr;
}

// Creates a folder for the results of a command for which nobody has named one.
Result<std::optional<NewFolder>> folder_unless_given(const RunRequest& config, const std::string& wanted) {
  if (config.output) return std::optional<NewFolder>();
  SYNCOPATE_ASSIGN_OR_RETURN(NewFolder created, NewFolder::create(wanted));
  return std::optional<NewFolder>(std::move(created));
}

ExitCode run_person(int argc, const char* const* argv) {
  if (!leaves_the_word_to_another()) {
    for (const std::string& line : foreign_paths({argv + 1, argv + argc})) write_out(stderr, line + "\n");
    for (const std::string& line : bare_quantities({argv + 1, argv + argc})) write_out(stderr, line + "\n");
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const Answer* const answer = answer_to(words)) return answer->run(words);
  Result<CommandLine> command = parse_command_line(argc, argv, own_variables());
  if (!command.ok()) {
    // The first of those on a host says what is wrong; an mpirun ends all with the first end.
    if (leaves_the_word_to_another()) {
      leave_the_word_to_the_first();
    } else {
      complain(command.status().message());
    }
    return ExitCode::kUsage;
  }
  if (command->action == CommandLine::Action::kHelp) {
    constexpr int kMostColumns = 100;  // longer lines are hard to read
    const int columns = terminal_columns();
    write_out(stdout, *help_text(command->topic, columns == 0 ? kMostColumns : std::min(columns, kMostColumns)));
    return ExitCode::kSuccess;
  }
  if (command->action == CommandLine::Action::kVersion) {
    write_out(stdout, version_text(this_environment()));
    return ExitCode::kSuccess;
  }
  if (command->action == CommandLine::Action::kSubmit) return show(submission_text(*command, own_program()));
  if (const Status allowed = settle_rights(*command); !allowed.ok()) return failed(allowed);
  if (command->action == CommandLine::Action::kCompareFinished) {
    return compare_finished(command->folders, command->prices, command->config.output, command->typed, command->plot);
  }
  if (command->place && (command->place->rank > 0 || command->place->evaluates)) {
    if (command->config.dry_run && command->place->one_host) return ExitCode::kSuccess;
    return task_main(*command->place, from_seconds(command->config.timeout_seconds),
                     from_seconds(command->config.grace_seconds));
  }
  std::optional<LauncherWatch> launcher;
  if (command->place) launcher.emplace();
  TaskGroup tasks;
  const Result<Survey> survey = survey_for(*command, tasks);
  if (survey.ok() && !survey->task_hosts.empty()) command->config.hosts = survey->task_hosts;
  Result<std::vector<ResolvedRun>> resolved =
      survey.ok() ? resolve_all(*command, machines_of(*survey)) : Result<std::vector<ResolvedRun>>(survey.status());
  if (!resolved.ok()) return failed(resolved.status());
  start_log("run_experiment", "%n: %v");
  if (command->action == CommandLine::Action::kProfile) return show(profile_model(resolved->front()));
  if (command->action == CommandLine::Action::kCalibrate) {
    QuietRuns runs(*survey);
    Console console;
    return show(calibrate(command->config, runs.resolver(), runs.runner(),
                          [&](const std::string& what) { console.say("measuring " + what); }));
  }
  if (compares(*command)) {
    ComparisonJob job = job_of(*command, std::move(*resolved));
    if (command->config.dry_run) return plan_comparison(job, *survey);
    const Result<std::optional<NewFolder>> created =
        folder_unless_given(command->config, fmt::format("results/{}-{}", calendar_stamp(), job.name));
    if (!created.ok()) return failed(created.status());
    if (*created) job.base.output = (*created)->path();
    const auto entry = listed(job.name.c_str(), job.runs.front().config, *job.base.output);
    return run_comparison(job, *survey, command->jobs.value_or(this_environment().cores));
  }
  if (command->like) write_out(stdout, to_text(*command->like) + "\n");
  Interrupts interrupts;
  ResolvedRun& run = resolved->front();
  const Result<std::optional<NewFolder>> created =
      run.dry_run ? std::optional<NewFolder>() : folder_unless_given(command->config, run.output);
  if (!created.ok()) return failed(created.status());
  if (*created) run.output = (*created)->path();
  const auto entry = run.dry_run ? nullptr : listed("run", run, run.output);
  return run_one(run, *survey, interrupts, command->plot);
}

// Reports memory or threads that run out anywhere as an error.
ExitCode run_caught(int argc, const char* const* argv) {
  let_writes_fail();
  raise_descriptor_limit();
  keep_standard_streams();
  ExitCode exit = ExitCode::kInternal;
  Status status = check_threads(kThreads);
  if (status.ok()) status = caught([&] { exit = run_person(argc, argv); });
  if (status.ok() && exit == ExitCode::kSuccess) status = output_status();
  if (status.ok()) return exit;
  complain(status.message());
  return exit_code_of(status);
}

}  // namespace
}  // namespace syncopate::experiments

int main(int argc, char** argv) {
  using namespace syncopate::experiments;
  leave_no_core_dumps();
  if (is_guard_command_line(argc, argv)) return guard_main(argc, argv);
  if (is_mpirun_agent_command_line(argc, argv)) return mpirun_agent_main(argc, argv);
  if (is_lend_keys_command_line(argc, argv)) return lend_keys_main(argc, argv);
  if (is_task_shell_command_line(argc, argv)) return task_shell_main(argc, argv);
  if (is_enter_namespace_command_line(argc, argv)) return enter_namespace_main(argc, argv);
  if (is_probe_command_line(argc, argv)) return probe_main(argc, argv);
  if (is_relay_command_line(argc, argv)) return relay_main(argc, argv);
  if (is_doctor_agent_command_line(argc, argv)) return doctor_agent_main(argc, argv);
  if (is_start_line(argc, argv)) return start_main(argc, argv);
  if (is_cell_command_line(argc, argv)) return static_cast<int>(cell_main(argc, argv));
  if (is_process_command_line(argc, argv)) return process_main(argc, argv, nullptr);
  return static_cast<int>(run_caught(argc, argv));
}

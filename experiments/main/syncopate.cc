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
#include "common/text/format.h"
#include "common/text/log.h"
#include "common/text/printable_text.h"
#include "experiments/cluster/command/command_start.h"
#include "experiments/cluster/command/relay.h"
#include "experiments/cluster/doctor/doctor_agent.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/namespaces/namespace_hosts.h"
#include "experiments/cluster/plan/placement.h"
#include "experiments/cluster/process/guard.h"
#include "experiments/cluster/process/mpirun_agent.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/process/probe.h"
#include "experiments/cluster/process/process_main.h"
#include "experiments/cluster/tasks/launcher_watch.h"
#include "experiments/cluster/tasks/task_group.h"
#include "experiments/cluster/tasks/task_main.h"
#include "experiments/cluster/tasks/task_shell.h"
#include "experiments/config/bare_quantities.h"
#include "experiments/config/command_line.h"
#include "experiments/config/commands.h"
#include "experiments/config/completion.h"
#include "experiments/config/help_text.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/calibrate/calibrate.h"
#include "experiments/lab/calibrate/profile_model.h"
#include "experiments/lab/compare/cell_pool.h"
#include "experiments/lab/compare/cell_process.h"
#include "experiments/lab/compare/compare.h"
#include "experiments/lab/compare/finished_runs.h"
#include "experiments/lab/convergence/convergence_run.h"
#include "experiments/lab/demo/demo_line.h"
#include "experiments/lab/doctor/doctor_line.h"
#include "experiments/lab/evaluate/evaluate_line.h"
#include "experiments/lab/predict/prediction_line.h"
#include "experiments/lab/report/evaluation_charts.h"
#include "experiments/lab/report/kept_results.h"
#include "experiments/lab/report/plot.h"
#include "experiments/lab/report/results_folder.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run/auto_resume.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/foreign_paths.h"
#include "experiments/lab/run/run_job.h"
#include "experiments/lab/run/running_line.h"
#include "experiments/lab/run/running_runs.h"
#include "experiments/lab/run/simulation_progress.h"
#include "experiments/lab/run_page/report_line.h"
#include "experiments/lab/submit/submission_text.h"
#include "experiments/lab/why/why_line.h"

namespace syncopate::experiments {
namespace {

// Threads that the coordinator needs. ZeroMQ ends a program that cannot create one.
constexpr int kThreads = 8;

void complain(const std::string& message) {
  write_out(stderr, fmt::format("run_experiment: {}\n", printable_lines(message)));
}

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
    if (!found.ok()) {
      complain(found.status().message());
      return exit_code_of(found.status());
    }
    if (!*found) return ExitCode::kSuccess;
    taken_up.emplace(std::move(**found));
  }
  if (config.dry_run) {
    const Result<std::string> text = dry_run_text(config, survey);
    if (!text.ok()) {
      complain(text.status().message());
      return exit_code_of(text.status());
    }
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

bool compares(const CommandLine& command) {
  return command.action == CommandLine::Action::kCompare || command.action == CommandLine::Action::kStudy;
}

// Returns what will run: the run, or the rows of the comparison. Checks that every option given by name has an effect
// on the devices that were found.
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

std::vector<PlannedRun> planned_rows(const std::vector<ComparedRun>& rows, std::vector<ResolvedRun> resolved) {
  std::vector<PlannedRun> runs;
  for (std::size_t row = 0; row < rows.size(); ++row) runs.push_back(planned(rows[row], std::move(resolved[row])));
  return runs;
}

// Finds out what the hosts have. Runs of one comparison have the same hosts, except local, and where they are numbered
// the first of the same. A dry run does not ask other hosts for what its plan does not show.
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

bool starts_mpirun(const CommandLine& command) {
  const auto by_mpirun = [](const RunRequest& config) { return config.launcher == LauncherKind::kMpirun; };
  return compares(command) ? std::ranges::any_of(command.runs, by_mpirun, &ComparedRun::config)
                           : by_mpirun(command.config);
}

// Sets who may read this process's memory, and checks whether mpirun may be started.
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

// Shows what a command has to say, or why it failed.
ExitCode show(const Result<std::string>& text) {
  if (!text.ok()) {
    complain(text.status().message());
    return exit_code_of(text.status());
  }
  write_out(stdout, *text);
  return ExitCode::kSuccess;
}

ExitCode run_prediction(const std::vector<std::string>& words) {
  std::optional<QuietRuns> runs;  // few predictions have any
  std::optional<SimulationProgress> progress(std::in_place);
  const Result<std::string> text = prediction_text(words, [&](const ResolvedRun& config) {
    if (!runs) runs.emplace(Survey());
    const bool has_buckets = sums_among_workers(config) && config.bucket_bytes;
    const std::string buckets =
        has_buckets ? ", buckets of " + format_bytes(static_cast<double>(*config.bucket_bytes)) : "";
    const std::string sharding = has_servers(config) ? fmt::format(", sharding {}", name_of(config.sharding)) : "";
    progress->begin(describe(config) + buckets + sharding);
    return runs->run(config);
  });
  progress.reset();
  if (text.status().code() != Code::kNotFound) return show(text);
  complain(text.status().message());  // no such table or profile
  return ExitCode::kUsage;
}

ExitCode run_convergence(const std::vector<std::string>& words) {
  const Result<ConvergenceRequest> request = parse_convergence_line(words);
  if (!request.ok()) {
    complain(request.status().message());
    return ExitCode::kUsage;
  }
  keep_memory_private();
  start_log("run_experiment", "%n: %v");
  QuietRuns runs((Survey()));
  Console console;
  return reproduce_convergence(*request, runs.resolver(), runs.runner(), console);
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

ExitCode failed(const Status& status) {
  complain(status.message());
  return exit_code_of(status);
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

// Carries out a line of a demonstration: shows the progress of a comparison, and of a single run how it has ended.
ExitCode run_for_demo(const std::vector<std::string>& words, Console& console) {
  std::vector<const char*> line = {"run_experiment"};
  for (const std::string& word : words) line.push_back(word.c_str());
  Result<CommandLine> command = parse_command_line(static_cast<int>(line.size()), line.data());
  const auto fail = [](const Status& status, ExitCode exit) {
    complain(status.message());
    return exit;
  };
  if (!command.ok()) return fail(command.status(), ExitCode::kUsage);
  if (!compares(*command) && command->action != CommandLine::Action::kRun) {
    complain(fmt::format("{}: a demonstration has runs, comparisons and studies alone", words.front()));
    return ExitCode::kUsage;
  }
  if (const Status allowed = settle_rights(*command); !allowed.ok()) return fail(allowed, exit_code_of(allowed));
  TaskGroup none;
  const Result<Survey> survey = survey_for(*command, none);
  if (!survey.ok()) return fail(survey.status(), exit_code_of(survey.status()));
  Result<std::vector<ResolvedRun>> resolved = resolve_all(*command, machines_of(*survey));
  if (!resolved.ok()) return fail(resolved.status(), exit_code_of(resolved.status()));
  if (compares(*command)) {
    ComparisonJob job = job_of(*command, std::move(*resolved));
    job.shows_tables = false;
    return run_comparison(job, *survey, command->jobs.value_or(this_environment().cores));
  }
  const JobResult result = QuietRuns(*survey).run(resolved->front());
  console.say(result.verdict.empty() ? result.facts.outcome : result.verdict);
  return result.exit;
}

ExitCode run_demonstration(const std::vector<std::string>& words) {
  start_log("run_experiment", "%n: %v");
  Console console;
  return demo_command(
      words, [&](const auto& line) { return run_for_demo(line, console); }, console);
}

ExitCode run_doctor(const std::vector<std::string>& words) {
  keep_memory_private();
  const Result<DoctorAnswer> answer =
      doctor_answer(words, [](const std::string& what) { write_out(stderr, what + "\n"); });
  if (!answer.ok()) {
    complain(answer.status().message());
    return exit_code_of(answer.status());
  }
  write_out(stdout, printable_lines(answer->text));
  return answer->is_well ? ExitCode::kSuccess : ExitCode::kUnequal;
}

ExitCode reproduce(const std::vector<std::string>& words) {
  const Result<CommandWords> read = command_words(words);
  const bool trains = read.ok() && std::ranges::find(read->operands, kConvergenceName) != read->operands.end();
  return trains ? run_convergence(words) : run_prediction(words);
}

// What answers a command that is no run of its own; its words begin with it.
struct Answer {
  const char* command;
  ExitCode (*run)(const std::vector<std::string>& words);
};

constexpr Answer kAnswers[] = {
    {"why", [](const auto& words) { return show(why_answer(words)); }},
    {"report", [](const auto& words) { return show(report_answer(words)); }},
    {"evaluate", [](const auto& words) { return show(evaluate_answer(words)); }},
    {"demo", run_demonstration},
    {"advise", run_prediction},
    {"predict", run_prediction},
    {"reproduce", reproduce},
    {"doctor", run_doctor},
    {"ps", [](const auto& words) { return show(running_answer(words)); }},
    {"stop", [](const auto& words) { return show(running_answer(words)); }},
    {"completion", [](const auto& words) { return show(completion_answer(words)); }},
};
constexpr Answer kCarriedOn{"study", run_prediction};

// Returns what answers the line; null where it is a run's, or asks for help.
const Answer* answer_to(const std::vector<std::string>& words) {
  if (words.empty() || asks_for_help(words)) return nullptr;
  if (asks_for_other_sizes(words)) return &kCarriedOn;
  const auto* const found = std::ranges::find(kAnswers, words.front(), &Answer::command);
  return found == std::end(kAnswers) ? nullptr : found;
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
  if (const Status allowed = settle_rights(*command); !allowed.ok()) {
    complain(allowed.message());
    return exit_code_of(allowed);
  }
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
  if (!resolved.ok()) {
    complain(resolved.status().message());
    return exit_code_of(resolved.status());
  }
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

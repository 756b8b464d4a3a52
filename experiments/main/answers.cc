#include "experiments/main/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/text/format.h"
#include "common/text/log.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/config/commands.h"
#include "experiments/config/completion.h"
#include "experiments/lab/convergence/convergence_run.h"
#include "experiments/lab/demo/demo_line.h"
#include "experiments/lab/doctor/doctor_line.h"
#include "experiments/lab/evaluate/evaluate_line.h"
#include "experiments/lab/predict/prediction_line.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run/running_line.h"
#include "experiments/lab/run/simulation_progress.h"
#include "experiments/lab/run_page/report_line.h"
#include "experiments/lab/why/why_line.h"
#include "experiments/main/ending.h"
#include "experiments/main/line_runs.h"

namespace syncopate::experiments {
namespace {

ExitCode run_prediction(const std::vector<std::string>& words) {
  std::optional<QuietRuns> runs;  // few predictions have any
  std::optional<SimulationProgress> progress(std::in_place);
  const Result<std::string> text = prediction_text(words, [&](const ResolvedRun& config) {
    if (!runs) runs.emplace(Survey());
    const bool has_buckets = sums_among_workers(config) && config.bucket_bytes;
    const std::string buckets =
        has_buckets ? ", buckets of " + format_bytes(static_cast<double>(*config.bucket_bytes)) : "";
    const std::string sharding =
        has_servers_alone(config) ? fmt::format(", sharding {}", name_of(config.sharding)) : "";
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

// Carries out a line of a demonstration: shows the progress of a comparison, and of a single run how it has ended.
ExitCode run_for_demo(const std::vector<std::string>& words, Console& console) {
  std::vector<const char*> line = {"run_experiment"};
  for (const std::string& word : words) line.push_back(word.c_str());
  Result<CommandLine> command = parse_command_line(static_cast<int>(line.size()), line.data());
  if (!command.ok()) return failed(command.status());
  if (!compares(*command) && command->action != CommandLine::Action::kRun) {
    complain(fmt::format("{}: a demonstration has runs, comparisons and studies alone", words.front()));
    return ExitCode::kUsage;
  }
  if (const Status allowed = settle_rights(*command); !allowed.ok()) return failed(allowed);
  TaskGroup none;
  const Result<Survey> survey = survey_for(*command, none);
  if (!survey.ok()) return failed(survey.status());
  Result<std::vector<ResolvedRun>> resolved = resolve_all(*command, machines_of(*survey));
  if (!resolved.ok()) return failed(resolved.status());
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
  if (!answer.ok()) return failed(answer.status());
  write_out(stdout, printable_lines(answer->text));
  return answer->is_well ? ExitCode::kSuccess : ExitCode::kUnequal;
}

ExitCode reproduce(const std::vector<std::string>& words) {
  const Result<CommandWords> read = command_words(words);
  const bool trains = read.ok() && std::ranges::find(read->operands, kConvergenceName) != read->operands.end();
  return trains ? run_convergence(words) : run_prediction(words);
}

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

}  // namespace

const Answer* answer_to(const std::vector<std::string>& words) {
  if (words.empty() || asks_for_help(words)) return nullptr;
  if (asks_for_other_sizes(words)) return &kCarriedOn;
  const auto* const found = std::ranges::find(kAnswers, words.front(), &Answer::command);
  return found == std::end(kAnswers) ? nullptr : found;
}

}  // namespace syncopate::experiments

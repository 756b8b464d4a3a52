// The program of Syncopate: run_experiment for a person, and every process that a run launches, but for workers on
// GPUs.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>

#include "experiments/config/command_line.h"
#include "experiments/process/process_main.h"
#include "experiments/report/summary_text.h"
#include "experiments/run/compare.h"
#include "experiments/run/run_job.h"

namespace syncopate::experiments {
namespace {

ExitCode run_one(const RunConfig& config, Interrupts& interrupts) {
  if (config.dry_run) {
    const Result<std::string> text = dry_run_text(config);
    if (!text.ok()) {
      fmt::print(stderr, "run_experiment: {}\n", text.status().message());
      return exit_code_of(text.status());
    }
    fmt::print("{}", *text);
    return ExitCode::kSuccess;
  }
  Console console;
  const JobResult result = run_job(config, interrupts, console);
  if (!result.reports.empty()) console.say(summary_text(result.config, result.reports, result.facts));
  if (!result.verdict.empty()) console.warn("run_experiment: " + result.verdict);
  return result.exit;
}

ExitCode run_person(int argc, const char* const* argv) {
  const Result<CommandLine> command = parse_command_line(argc, argv);
  if (!command.ok()) {
    fmt::print(stderr, "run_experiment: {}\n", command.status().message());
    return ExitCode::kUsage;
  }
  if (command->action == CommandLine::Action::kHelp) {
    fmt::print("{}", command->text);
    return ExitCode::kSuccess;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_st("run_experiment"));
  spdlog::set_pattern("run_experiment: %v");
  Interrupts interrupts;
  if (command->action == CommandLine::Action::kCompare) {
    return compare(command->config, command->runs, [&](const RunConfig& config) {
      Console quiet(true);
      return run_job(config, interrupts, quiet);
    });
  }
  return run_one(command->config, interrupts);
}

}  // namespace
}  // namespace syncopate::experiments

int main(int argc, char** argv) {
  using namespace syncopate::experiments;
  if (is_process_command_line(argc, argv)) return process_main(argc, argv, nullptr);
  return static_cast<int>(run_person(argc, argv));
}

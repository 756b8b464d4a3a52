#include "experiments/lab/convergence/convergence_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/os/whole_file.h"
#include "experiments/config/command_line.h"
#include "experiments/config/commands.h"
#include "experiments/lab/convergence/convergence_files.h"
#include "experiments/lab/convergence/convergence_plan.h"
#include "experiments/lab/convergence/convergence_text.h"
#include "experiments/lab/run/scratch_folder.h"
#include "worker/data/open_dataset.h"

namespace syncopate::experiments {
namespace {

Result<ResolvedRun> resolved_setting(const ConvergenceSetting& setting, const ConvergenceRuns& runs,
                                     const std::string& folder) {
  std::vector<std::string> words = {"run_experiment"};
  words.insert(words.end(), setting.flags.begin(), setting.flags.end());
  words.push_back(fmt::format("--repeat={}", kConvergenceSeeds));
  words.emplace_back("--on-nan=go-on");  // a run that collapses is a result
  words.push_back("--data-dir=" + runs.data_dir);
  words.push_back("--output=" + folder);
  std::vector<const char*> line;
  for (const std::string& word : words) line.push_back(word.c_str());
  SYNCOPATE_ASSIGN_OR_RETURN(const CommandLine command, parse_command_line(static_cast<int>(line.size()), line.data()));
  return runs.resolver(command.config);
}

FailedRun failed_with(const Status& status) { return {exit_code_of(status), status.message()}; }

// Returns what the reports of all seeds come to; none if one of them has no accuracy.
std::optional<MeasuredConvergence> measured_from(const std::vector<RunReport>& reports) {
  MeasuredConvergence measured;
  for (const RunReport& report : reports) {
    if (!report.final_test_accuracy) return std::nullopt;
    measured.accuracies.push_back(*report.final_test_accuracy);
    measured.staleness += report.staleness_mean / static_cast<double>(reports.size());
  }
  return measured.accuracies.size() == kConvergenceSeeds ? std::optional(measured) : std::nullopt;
}

}  // namespace

Result<ConvergenceRequest> parse_convergence_line(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto read, command_words(words));
  const auto& [names, given] = read;
  if (names.size() != 1 || names.front() != kConvergenceName) {
    return Status::invalid_argument("reproduce convergence: takes no other name; give another table a line of its own");
  }
  ConvergenceRequest request;
  if (const auto data_dir = given.find("data-dir"); data_dir != given.end()) request.data_dir = data_dir->second;
  if (const auto output = given.find("output"); output != given.end()) request.output = output->second;
  return request;
}

ReproducedConvergence run_settings(ConvergenceTable table, const ConvergenceRuns& runs, FailedRun& failed) {
  ReproducedConvergence reproduced{.table = std::move(table), .measured = {}};
  for (const ConvergenceSetting& setting : reproduced.table.settings) {
    const std::string folder = fmt::format("{}/{}-{}", runs.folder, reproduced.table.name, reproduced.measured.size());
    const Result<ResolvedRun> config = resolved_setting(setting, runs, folder);
    if (!config.ok()) {
      failed = failed_with(config.status());
      break;
    }
    const JobResult result = runs.runner(*config);
    if (result.exit != ExitCode::kSuccess) {
      const bool is_interrupted = result.exit == ExitCode::kInterrupted;
      failed = {result.exit, is_interrupted ? "interrupted; nothing is kept" : result.verdict};
      break;
    }
    std::optional<MeasuredConvergence> measured = measured_from(result.reports);
    if (!measured) {
      failed = {ExitCode::kInternal, "a run has no accuracy at its end"};
      break;
    }
    reproduced.measured.push_back(std::move(*measured));
  }
  if (failed.exit != ExitCode::kSuccess) {
    failed.verdict = fmt::format("{}: {}", reproduced.table.settings[reproduced.measured.size()].name, failed.verdict);
  }
  return reproduced;
}

ExitCode reproduce_convergence(const ConvergenceRequest& request, const Resolver& resolver, const JobRunner& runner,
                               Console& console) {
  const auto complain = [&](const std::string& message) { console.warn("run_experiment: " + message); };
  // What cannot be written is said before a minute has passed.
  const Status writable = request.output.empty() ? Status() : make_folder(request.output);
  if (!writable.ok()) {
    complain(writable.message());
    return exit_code_of(writable);
  }
  const Result<ScratchFolder> scratch = ScratchFolder::make();
  if (!scratch.ok()) {
    complain(scratch.status().message());
    return exit_code_of(scratch.status());
  }
  std::vector<ConvergenceTable> tables = {softsync_claim(), labels_claim(LabelsData::kDigits),
                                          deep_labels_claim(LabelsData::kDigits)};
  std::vector<std::string> notes;
  const Result<worker::SampleForm> fashion = worker::sample_form("fashion-mnist", request.data_dir);
  if (fashion.ok()) {
    tables.push_back(labels_claim(LabelsData::kFashionMnist));
    tables.push_back(deep_labels_claim(LabelsData::kFashionMnist));
  } else {
    notes.push_back("Left out: the same on Fashion-MNIST itself. " + fashion.status().message());
  }
  std::vector<ReproducedConvergence> reproduced;
  for (ConvergenceTable& table : tables) {
    console.say(fmt::format("{}: {} settings, {} seeds each", table.name, table.settings.size(), kConvergenceSeeds));
    FailedRun failed;
    const ConvergenceRuns runs{resolver, runner, request.data_dir, scratch->path()};
    ReproducedConvergence one = run_settings(std::move(table), runs, failed);
    if (failed.exit != ExitCode::kSuccess) {
      complain(failed.verdict);
      return failed.exit;
    }
    reproduced.push_back(std::move(one));
  }
  for (const ReproducedConvergence& one : reproduced) console.say("\n" + convergence_text(one));
  for (const std::string& note : notes) console.say(note);
  if (request.output.empty()) return ExitCode::kSuccess;
  if (const Status written = write_convergence(reproduced, notes, request.output); !written.ok()) {
    complain(written.message());
    return exit_code_of(written);
  }
  console.say(fmt::format("\nresults in {}: convergence.html, convergence.csv", request.output));
  return ExitCode::kSuccess;
}

}  // namespace syncopate::experiments

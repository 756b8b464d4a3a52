#include "experiments/lab/compare/finished_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/clock.h"
#include "common/text/format.h"
#include "experiments/cluster/host/build_facts.h"
#include "experiments/config/comparison.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/toml.h"
#include "experiments/lab/compare/explained_rows.h"
#include "experiments/lab/compare/row_processes.h"
#include "experiments/lab/report/comparison_charts.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/comparison_tables.h"
#include "experiments/lab/report/finished_run.h"
#include "experiments/lab/report/mode_of.h"
#include "experiments/lab/report/plot.h"
#include "experiments/lab/report/results_folder.h"
#include "experiments/lab/report/steadiness.h"
#include "experiments/lab/run/console.h"

namespace syncopate::experiments {
namespace {

// Returns whether the option applies to the run. The one worker of local, with the batch of all, represents all.
bool has_part(const OptionSpec& option, const ResolvedRun& config) {
  constexpr std::string_view kOfWorkers[] = {"workers", "batch-size", "global-batch-size"};
  const bool stands_for_all = !is_distributed(config);
  return option.has_effect(config) &&
         !(stands_for_all && std::ranges::find(kOfWorkers, option.name) != std::end(kOfWorkers));
}

// Returns the options in which the runs differ, without those that the mode's name includes, or that number
// repetitions.
std::vector<OptionSpec> differing_options(const std::vector<FinishedRun>& runs) {
  constexpr std::string_view kElsewhere[] = {"mode", "consistency", "sync-every", "gossip",
                                             "seed", "repeat",      "data-dir"};
  std::vector<OptionSpec> differing;
  for (OptionSpec& option : option_table()) {
    if (!option.in_file || std::ranges::find(kElsewhere, option.name) != std::end(kElsewhere)) continue;
    std::set<std::string> values;
    for (const FinishedRun& run : runs) {
      if (has_part(option, run.config)) values.insert(option.get(run.config));
    }
    if (values.size() > 1) differing.push_back(std::move(option));
  }
  return differing;
}

ComparedRow row_of(const FinishedRun& run, const std::vector<OptionSpec>& differing) {
  ComparedRow row{.mode = mode_of(run.config)};
  row.label = row.mode;
  if (!run.summary.not_finite.empty()) row.label += " with NaN or infinity";
  if (run.summary.resumed_at) row.label += fmt::format(" resumed at step {}", *run.summary.resumed_at);
  for (const OptionSpec& option : differing) {
    if (!has_part(option, run.config)) continue;
    const std::string value = option.get(run.config);
    row.values.emplace_back(option.name, value.empty() ? "none" : value);
    row.label += fmt::format(" {}={}", row.values.back().first, row.values.back().second);
  }
  set_processes(run.config, row);
  row.rate = rate_of(run.config);
  row.updates_a_pass = static_cast<double>(run.summary.steps_per_epoch) * run.config.workers /
                       static_cast<double>(batches_an_update(run.config));
  row.parameters = run.summary.parameters;
  return row;
}

void add_rounds(const FinishedRun& run, ComparedRow& row) {
  for (std::size_t repeat = 0; repeat < run.summary.reports.size(); ++repeat) {
    row.rounds.emplace_back(run.summary.reports[repeat]);
    row.evals.push_back(run.evals[repeat]);
    const bool is_said = repeat < run.summary.seeds.size();
    row.seeds.push_back(is_said ? run.summary.seeds[repeat] : run.config.seed + repeat);
    row.folders.push_back(run.folder);
  }
}

// Makes the number of rounds the same in all rows.
void pad(ComparedRow& row, std::size_t rounds) {
  row.rounds.resize(rounds);
  row.evals.resize(rounds);
  row.seeds.resize(rounds);
  row.folders.resize(rounds);
}

std::string machine_of(const Environment& environment) {
  return fmt::format("{}, {} cores, {}, commit {}", environment.host, environment.cores, environment.cpu_model,
                     environment.commit.empty() ? "unknown" : environment.commit);
}

// A run that has gone on from a checkpoint has done less than the others here.
std::string resumed_note(const FinishedRun& run) {
  const std::string until =
      run.summary.counts_from_resume ? "its samples and its curve count from there, too, so that its target is left out"
      : run.summary.resumed_seconds  ? fmt::format(
                                           "its samples, its curve and a time to a target count from the beginning "
                                            "of training, {} before that",
                                           format_duration(*run.summary.resumed_seconds))
                                    : "its samples count from the beginning of training, and since its checkpoint does "
                                      "not tell how long that took, a time to a target is left out";
  return fmt::format(
      "{} went on from a checkpoint at step {}: its throughput, its time and its costs are of the steps "
      "behind that; {}",
      run.folder, *run.summary.resumed_at, until);
}

std::vector<std::string> notes_of(const std::vector<FinishedRun>& runs) {
  std::vector<std::string> notes = {
      "finished runs, which did not run in turns: what the machine did meanwhile is part of their differences"};
  for (const FinishedRun& run : runs) {
    if (run.summary.resumed_at) notes.push_back(resumed_note(run));
    if (!run.summary.not_finite.empty()) notes.push_back(fmt::format("{}: {}", run.folder, run.summary.not_finite));
    if (run.summary.outcome != "completed") notes.push_back(fmt::format("{}: {}", run.folder, run.summary.outcome));
    if (machine_of(run.environment) != machine_of(runs.front().environment)) {
      notes.push_back(fmt::format("{} ran on another machine or program than {}: {}; {}", run.folder,
                                  runs.front().folder, machine_of(run.environment),
                                  machine_of(runs.front().environment)));
    }
  }
  return notes;
}

// Runs that step farther or less far in a pass than others learn unlike for that alone.
std::optional<std::string> rate_note(const std::vector<ComparedRow>& rows) {
  constexpr double kAlike = 1.01;
  const auto a_pass = [](const ComparedRow& row) { return row.rate * row.updates_a_pass; };
  const ComparedRow *least = nullptr, *most = nullptr;
  for (const ComparedRow& row : rows) {
    if (!(a_pass(row) > 0)) continue;
    if (least == nullptr || a_pass(row) < a_pass(*least)) least = &row;
    if (most == nullptr || a_pass(row) > a_pass(*most)) most = &row;
  }
  if (least == nullptr || a_pass(*most) <= kAlike * a_pass(*least)) return std::nullopt;
  return fmt::format(
      "beware: rates a pass are unequal, {:.4g} of {} and {:.4g} of {}: what was learnt, and when a target was "
      "reached, is a matter of rates as well as of modes; a comparison that trains its rows gives them the same unless "
      "it is asked for others",
      a_pass(*least), least->label, a_pass(*most), most->label);
}

// A run whose repeats became slower or faster has no one speed to compare.
std::vector<std::string> trend_notes(const std::vector<FinishedRun>& runs) {
  std::vector<std::string> notes;
  for (const FinishedRun& run : runs) {
    std::vector<double> logarithms;
    for (const RunReport& repeat : run.summary.reports) {
      const double speed = repeat.samples_per_second.value_or(0);
      if (speed > 0) logarithms.push_back(std::log(speed));
    }
    const std::optional<Drift> trend = trend_of(logarithms);
    if (!trend) continue;
    notes.push_back(
        fmt::format("beware: {} became {:.2g} % {} from each repeat to the next, over {} repeats (by chance in {:.1g} "
                    "of cases): its "
                    "mean is of no steady speed",
                    run.folder, 100 * std::abs(trend->a_round - 1), trend->a_round < 1 ? "slower" : "faster",
                    trend->rounds, trend->p));
  }
  return notes;
}

std::string job_of(const std::vector<FinishedRun>& runs) {
  std::set<std::string> jobs;
  for (const FinishedRun& run : runs) jobs.insert(model_on_data(run.config));
  return fmt::format("finished runs: {}", fmt::join(jobs, ", "));
}

}  // namespace

Result<ComparisonReport> read_finished_runs(const std::vector<std::string>& folders) {
  std::vector<FinishedRun> runs;
  for (const std::string& folder : folders) {
    SYNCOPATE_ASSIGN_OR_RETURN(FinishedRun run, read_finished_run(folder));
    runs.push_back(std::move(run));
  }
  ComparisonReport report{.job = job_of(runs), .machine = runs.front().environment, .in_rounds = false};
  report.simulated =
      std::ranges::all_of(runs, [](const FinishedRun& run) { return run.config.cluster == ClusterKind::kSimulated; });
  const std::vector<OptionSpec> differing = differing_options(runs);
  for (const OptionSpec& option : differing) report.varied.push_back(option.name);
  for (const FinishedRun& run : runs) {
    ComparedRow row = row_of(run, differing);
    auto same = std::ranges::find(report.rows, row.label, &ComparedRow::label);
    if (same == report.rows.end()) same = report.rows.insert(same, std::move(row));
    add_rounds(run, *same);
  }
  for (const ComparedRow& row : report.rows) report.rounds_asked = std::max(report.rounds_asked, row.rounds.size());
  for (ComparedRow& row : report.rows) pad(row, report.rounds_asked);
  std::vector<ResolvedRun> configs;
  for (const FinishedRun& run : runs) configs.push_back(run.config);
  report.config_toml = to_toml(configs);
  const double target = runs.front().config.target_accuracy;
  const bool is_shared = std::ranges::all_of(configs, [&](const auto& c) { return c.target_accuracy == target; });
  report.target = is_shared ? target : 0;
  report.notes = notes_of(runs);
  if (const std::optional<std::string> note = rate_note(report.rows)) report.notes.push_back(*note);
  for (std::string& note : trend_notes(runs)) report.notes.push_back(std::move(note));
  return report;
}

ExitCode compare_finished(const std::vector<std::string>& folders, const std::optional<prediction::HostPrices>& prices,
                          const std::optional<std::string>& output, const std::string& command, bool plots) {
  Console console;
  const auto fail = [&](const Status& status) {
    console.warn("run_experiment: " + status.message());
    return exit_code_of(status);
  };
  Result<ComparisonReport> report = read_finished_runs(folders);
  if (!report.ok()) return fail(report.status());
  report->command = command;
  report->prices = prices;
  report->started = calendar_text(calendar_stamp());
  report->version = fmt::format("{} ({})", program_version(), source_fingerprint());
  std::optional<NewFolder> created;
  if (!output) {
    Result<NewFolder> made = NewFolder::create("results/" + calendar_stamp() + "-compare");
    if (!made.ok()) return fail(made.status());
    created.emplace(std::move(*made));
  }
  const std::string folder = output ? *output : created->path();
  const Result<ResultsFolder> taken = ResultsFolder::take(folder, [&] { return check_holds_nothing(folder); });
  if (!taken.ok()) return fail(taken.status());
  explain_rows(*report);
  console.say("\n" + comparison_text(*report));
  if (plots) console.draw(plots_of(comparison_charts(*report, figures_of(*report)), terminal_plot_style()) + "\n");
  if (const Status written = write_comparison(*report, folder); !written.ok()) return fail(written);
  console.say(fmt::format("results in {0}: comparison.html shows them", folder));
  return ExitCode::kSuccess;
}

}  // namespace syncopate::experiments

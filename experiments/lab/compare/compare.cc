#include "experiments/lab/compare/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "common/clock.h"
#include "common/random.h"
#include "experiments/cluster/plan/command_environment.h"
#include "experiments/config/preset.h"
#include "experiments/config/variation.h"
#include "experiments/lab/compare/begun_report.h"
#include "experiments/lab/compare/circumstances.h"
#include "experiments/lab/compare/equality.h"
#include "experiments/lab/compare/explained_rows.h"
#include "experiments/lab/compare/kept_runs.h"
#include "experiments/lab/compare/measured_once.h"
#include "experiments/lab/compare/rate_tuning.h"
#include "experiments/lab/compare/rounds_end.h"
#include "experiments/lab/compare/row_processes.h"
#include "experiments/lab/compare/row_runner.h"
#include "experiments/lab/report/comparison_charts.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/comparison_tables.h"
#include "experiments/lab/report/mode_of.h"
#include "experiments/lab/report/plot.h"
#include "experiments/lab/run/console.h"

namespace syncopate::experiments {
namespace {

class Comparison {
 public:
  Comparison(const ComparisonJob& job, const Resolver& resolver, const JobRunner& runner, const Clock& clock,
             const RunsAhead& ahead)
      : job_(job),
        base_(job.base),
        resolver_(resolver),
        run_job_(runner),
        clock_(clock),
        ahead_(ahead),
        rounds_(static_cast<std::size_t>(job.base.repeat)),
        folder_(base_.output.value_or("results/" + calendar_stamp() + "-" + job.name)),
        runs_(job.runs),
        is_out_(job.runs.size()),
        report_(begin_report(job, rounds_)),
        begin_(clock.now()) {
    std::string asked;
    for (const PlannedRun& run : runs_) {
      if (runs_command(run.config)) asked += (asked.empty() ? "" : ";") + asked_of_program(run.config);
    }
    for (PlannedRun& run : runs_) run.config.compared = asked;
  }

  ExitCode run() {
    Result<KeptRuns> kept = KeptRuns::open(folder_);
    if (!kept.ok()) return fail(exit_code_of(kept.status()), kept.status().message());
    kept_.emplace(std::move(*kept));
    for (const std::string& line : job_.left_out) console_.say(line);
    if (const ExitCode fair = has_evaluator(base_) ? prove_equality() : ExitCode::kSuccess;
        fair != ExitCode::kSuccess) {
      return fair;
    }
    note_circumstances();
    const Status measured =
        measure_once(runs_, folder_ + "/measured", [&](const std::string& what) { console_.say(what); });
    if (!measured.ok()) return fail(exit_code_of(measured), measured.message());
    ExitCode exit = measure_all();
    if (exit != ExitCode::kSuccess) console_.warn("run_experiment: " + report_.outcome);
    explain_rows(report_);
    if (has_finished_any() && job_.shows_tables) console_.say("\n" + comparison_text(report_));
    if (has_finished_any() && job_.plots) {
      console_.draw(plots_of(comparison_charts(report_, figures_of(report_)), terminal_plot_style()) + "\n");
    }
    if (has_finished_any() || !report_.trials.empty()) {
      const Status written = write_comparison(report_, folder_);
      if (!written.ok()) return fail(ExitCode::kOutput, written.message());
      if (job_.shows_tables) console_.say(fmt::format("results in {0}: comparison.html shows them", folder_));
    }
    if (exit == ExitCode::kInterrupted) {
      console_.say(fmt::format("the same command with --output={} goes on from here", folder_));
    }
    return exit;
  }

 private:
  ExitCode prove_equality() {
    console_.say("first, whether the synchronous modes follow the same curve");
    std::error_code ignored;
    std::filesystem::remove_all(folder_ + "/equality", ignored);  // of a comparison that was interrupted
    std::vector<Mode> modes;
    std::set<std::string> ways;
    for (const PlannedRun& run : runs_) {
      modes.push_back(run.config.mode);
      if (gathers_on_demand(run.config)) ways.insert(mode_of(run.config));
      if (stashes_weights(run.config)) updates_by_batch_.insert(run.label);
      if (!divides_model(run.config) || stashes_weights(run.config)) continue;
      ways.insert(fmt::format("{}:{}", traits_of(run.config.mode).in_step, division_of(run.config)));
    }
    const RunRequest base = base_of_all(ways);
    EqualityOutcome outcome = check_equality(base, modes, ways, folder_ + "/equality", resolver_, run_job_);
    if (outcome.exit != ExitCode::kSuccess) return fail(outcome.exit, outcome.line);
    for (const std::string& way : ways_out_) outcome.line += "; not shown for " + way;
    for (const std::string& row : updates_by_batch_) {
      outcome.line += fmt::format("; {} is left out, which updates batch by batch under pipedream", row);
    }
    console_.say(outcome.line + "\n");
    report_.notes.push_back(outcome.line);
    return ExitCode::kSuccess;
  }

  // Returns the job with which all of these ways can run: with the first values of varied options, or with those of the
  // first row that they can all run with, of several workers if any is; else takes out those that cannot.
  RunRequest base_of_all(std::set<std::string>& ways) {
    const auto cannot = [&](const RunRequest& base) {
      std::set<std::string> out;
      for (const std::string& way : ways) {
        if (!comparison_runs(base, way).ok()) out.insert(way);
      }
      return out;
    };
    std::optional<RunRequest> of_one_worker;  // which sums nothing
    const auto suits = [&](const RunRequest& base) {
      if (!cannot(base).empty()) return false;
      if (!sums_something(base) && !of_one_worker) of_one_worker = base;
      return sums_something(base);
    };
    if (suits(base_)) return base_;
    for (const PlannedRun& run : runs_) {
      RunRequest base = base_;
      for (const auto& [option, value] : run.values) {
        if (!set_varied(base, option, value).ok()) base = base_;
      }
      if (suits(base)) return base;
    }
    if (of_one_worker) return *of_one_worker;
    ways_out_ = cannot(base_);
    for (const std::string& way : ways_out_) ways.erase(way);
    return base_;
  }

  // Says once what a row like:PRESET is like, and is not.
  void note_preset(const std::string& mode) {
    if (!mode.starts_with(kLikeMode)) return;
    const Result<Preset> preset = open_preset(mode.substr(kLikeMode.size()));
    const bool is_noted = !preset.ok() || std::ranges::any_of(report_.notes, [&](const std::string& line) {
      return line.starts_with("like " + preset->name);
    });
    if (is_noted) return;
    console_.say(to_text(*preset));
    std::string line = fmt::format("like {}: {}", preset->name, preset->about);
    for (const std::string& differs : preset->differs) line += "; not the same: " + differs;
    report_.notes.push_back(std::move(line));
  }

  void note_circumstances() {
    for (const PlannedRun& run : runs_) note_preset(run.mode);
    for (std::string& line : circumstances_of(runs_, base_, job_.varied, report_.machine.cores)) {
      console_.say(line + "\n");
      report_.notes.push_back(std::move(line));
    }
  }

  ExitCode measure_all() {
    const std::size_t trials = job_.tune_rate ? job_.tune_rate->values.size() * seeds_a_trial(base_.repeat) : 0;
    RowRunner runner(std::vector<std::size_t>(runs_.size(), rounds_ + trials), *kept_, run_job_, clock_, console_);
    const TimePoint tuning_begin = clock_.now();
    if (job_.tune_rate) {
      const RateTuning tuning{.grid = *job_.tune_rate,
                              .rule = job_.rate_rule,
                              .reference_samples = job_.reference_samples,
                              .rounds = base_.repeat,
                              .folder = folder_ + "/tuning"};
      const TunedRates tuned = tune_rates(tuning, runs_, runner, console_, report_);
      if (tuned.exit != ExitCode::kSuccess) return tuned.exit;
      for (const std::size_t row : tuned.diverged) leave_out(row, runner);
      console_.say("");
    }
    const Duration tuned = clock_.now() - tuning_begin;
    for (std::size_t row = 0; row < runs_.size(); ++row) report_.rows[row].rate = rate_of(runs_[row].config);
    if (job_.auto_rounds) {
      rounds_end_.emplace(*job_.auto_rounds, clock_, begin_ + tuned);
      console_.say(rounds_end_->announcement());
      runner.ends_by(rounds_end_->deadline());
    }
    ExitCode first = ExitCode::kSuccess;
    std::size_t announced = 0;
    for (std::size_t round = 0; round < rounds_; ++round) {
      if (round >= announced) {
        const std::size_t next = job_.auto_rounds ? RoundsEnd::surely(round, report_.is_certain) : rounds_;
        const Status begun = announce(announced, std::exchange(announced, next));
        if (!begun.ok()) return fail(exit_code_of(begun), begun.message());
      }
      const ExitCode exit = run_round(round, runner);
      if (first == ExitCode::kSuccess) first = exit;
      if (has_ended_) return exit;
      const Status written = has_finished_any() ? write_comparison(report_, folder_) : Status();
      if (!written.ok()) return fail(ExitCode::kOutput, written.message());
      if (rounds_end_ && rounds_end_->is_enough(report_, round + 1)) break;
    }
    note_kept(runner);
    if (job_.auto_rounds) end_rounds();
    return first;
  }

  // Leaves out the rounds that --repeat=auto did not need, and says why.
  void end_rounds() {
    const std::size_t rounds = report_.order.size();
    for (ComparedRow& row : report_.rows) {
      row.rounds.resize(rounds);
      row.evals.resize(rounds);
      row.seeds.resize(rounds);
      row.folders.resize(rounds);
    }
    report_.rounds_asked = rounds;
    report_.notes.push_back(rounds_end_->reason(rounds));
  }

  // Tells whoever may begin them early which runs of these rounds there are still to be.
  Status announce(std::size_t begin, std::size_t end) {
    if (!ahead_ || !all_are_measured(runs_)) return {};
    std::vector<ResolvedRun> missing;
    for (std::size_t round = begin; round < std::min(end, rounds_); ++round) {
      for (const std::size_t row : round_order(runs_.size(), base_.seed, round)) {
        if (is_out_[row]) continue;
        ResolvedRun config = config_of(row, round);
        SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<JobResult> before, kept_->find(config));
        if (!before) missing.push_back(std::move(config));
      }
    }
    return ahead_(missing, folder_);
  }

  void note_kept(const RowRunner& runner) {
    if (runner.kept() == 0) return;
    const bool took_no_turns = runner.ran() > 0 && base_.cluster != ClusterKind::kSimulated;
    report_.notes.push_back(
        fmt::format("{} runs were completed before, and kept{}",
                    runner.ran() > 0 ? fmt::format("{} of the", runner.kept()) : fmt::format("all {}", runner.kept()),
                    took_no_turns ? ": they and the later ones did not take turns" : ""));
  }

  ResolvedRun config_of(std::size_t row, std::size_t round) const {
    ResolvedRun config = runs_[row].config;
    config.repeat = 1;
    config.seed += round;
    config.output = fmt::format("{}/{}-{}", folder_, folder_of(runs_[row].label), round + 1);
    return config;
  }

  // Returns the first exit code that is not a success.
  ExitCode run_round(std::size_t round, RowRunner& runner) {
    ExitCode first = ExitCode::kSuccess;
    report_.order.emplace_back();
    std::size_t number = 0;
    const auto rows = static_cast<std::size_t>(std::ranges::count(is_out_, false));
    for (const std::size_t row : round_order(runs_.size(), base_.seed, round)) {
      if (is_out_[row]) continue;
      const std::string what =
          fmt::format("round {}/{}{}, run {:>{}}/{}: {:<{}}", round + 1, job_.auto_rounds ? "up to " : "", rounds_,
                      ++number, std::to_string(rows).size(), rows, runs_[row].label, width());
      const ExitCode exit = measure(row, round, what, runner);
      if (exit == ExitCode::kSuccess) continue;
      if (first == ExitCode::kSuccess) first = exit;
      if (has_ended_) return exit;
    }
    return first;
  }

  // What was done to a script, and what its workers read, of which rows may differ: once, with the rows of which it
  // holds.
  void note_script(const std::string& label, const RunFacts& facts) {
    for (const char* const name : {"taken over", "batches"}) {
      const auto told = facts.of_workers.find(name);
      if (told == facts.of_workers.end()) continue;
      const std::string words = fmt::format("{}: {}", name, told->second);
      const auto note =
          std::ranges::find_if(report_.notes, [&](const std::string& line) { return line.ends_with(words); });
      if (note == report_.notes.end()) {
        report_.notes.push_back(fmt::format("{}: {}", label, words));
        continue;
      }
      const std::string rows = note->substr(0, note->size() - words.size() - 2);
      if (fmt::format(", {},", rows).find(fmt::format(", {},", label)) == std::string::npos) {
        *note = fmt::format("{}, {}: {}", rows, label, words);
      }
    }
  }

  ExitCode measure(std::size_t row, std::size_t round, const std::string& what, RowRunner& runner) {
    const ResolvedRun config = config_of(row, round);
    JobResult result = runner.run(row, what, config);
    ComparedRow& to = report_.rows[row];
    for (const std::string& event : result.facts.events) {
      const auto is_the_same = [&](const std::string& note) {
        return note.starts_with(runs_[row].label + ", round ") && note.ends_with(": " + event);
      };
      if (std::ranges::any_of(report_.notes, is_the_same)) continue;
      report_.notes.push_back(fmt::format("{}, round {}: {}", runs_[row].label, round + 1, event));
    }
    if (result.exit == ExitCode::kSuccess && result.facts.outcome != RunFacts().outcome) {
      report_.notes.push_back(fmt::format("{}, round {}: {}", runs_[row].label, round + 1, result.facts.outcome));
    }
    if (result.exit != ExitCode::kSuccess) {
      const std::string line = fmt::format("{}, round {}: {}", runs_[row].label, round + 1, result.verdict);
      if (!is_lost_to_a_fault(config, result) && result.exit != ExitCode::kNotFinite) {
        has_ended_ = true;
        report_.outcome = line;
        return result.exit;
      }
      leave_out(row, runner);
      report_.notes.push_back(line + "; it is left out from then on");
      report_.outcome = (report_.outcome == ComparisonReport().outcome ? "" : report_.outcome + "; ") + line;
      console_.warn("run_experiment: " + report_.notes.back());
      return result.exit;
    }
    note_script(runs_[row].label, result.facts);
    report_.order.back().push_back(row);
    to.rounds[round] = std::move(result.reports.front());
    to.evals[round] = std::move(result.evals.front());
    to.seeds[round] = config.seed;
    to.folders[round] = config.output;
    to.parameters = result.facts.parameters;
    if (const RunReport& report = *to.rounds[round]; runs_command(config) && report.total_steps > 0) {
      to.batch_size = static_cast<int>(report.total_samples / report.total_steps);
    }
    to.updates_a_pass = static_cast<double>(result.facts.steps_per_epoch * config.workers) /
                        static_cast<double>(batches_an_update(config));
    return ExitCode::kSuccess;
  }

  // A fault of --fault can end a run although nothing is wrong with the comparison; so can a rate that one row does not
  // stand (ExitCode::kNotFinite).
  static bool is_lost_to_a_fault(const ResolvedRun& config, const JobResult& result) {
    return !config.faults.empty() && (result.exit == ExitCode::kProcessLost || result.exit == ExitCode::kTimeout);
  }

  void leave_out(std::size_t row, RowRunner& runner) {
    is_out_[row] = true;
    runner.leave_out(row);
  }

  bool has_finished_any() const {
    return std::ranges::any_of(report_.rows, [](const ComparedRow& row) { return !finished_rounds(row).empty(); });
  }

  std::size_t width() const {
    std::size_t width = 0;
    for (const PlannedRun& run : runs_) width = std::max(width, run.label.size());
    return width;
  }

  ExitCode fail(ExitCode exit, const std::string& line) {
    console_.warn("run_experiment: " + line);
    return exit;
  }

  const ComparisonJob& job_;
  const RunRequest& base_;  // of job_
  const Resolver& resolver_;
  const JobRunner& run_job_;
  const Clock& clock_;
  const RunsAhead& ahead_;
  const std::size_t rounds_;
  const std::string folder_;
  std::vector<PlannedRun> runs_;            // with the best rates found
  std::set<std::string> ways_out_;          // of which nobody has checked that they follow the curve
  std::set<std::string> updates_by_batch_;  // rows that no curve is held against
  std::vector<bool> is_out_;                // by row: whether it was left out
  bool has_ended_ = false;                  // ended early
  ComparisonReport report_;
  const TimePoint begin_;
  std::optional<RoundsEnd> rounds_end_;  // of --repeat=auto, from the first round on
  std::optional<KeptRuns> kept_;         // from run() on
  Console console_;
};

constexpr std::uint64_t kStreamOfRounds = 0x726F756E6473;  // separate from other draws from the seed

}  // namespace

ExitCode compare(const ComparisonJob& job, const Resolver& resolver, const JobRunner& runner, const Clock& clock,
                 const RunsAhead& ahead) {
  return Comparison(job, resolver, runner, clock, ahead).run();
}

std::vector<std::size_t> round_order(std::size_t rows, std::uint64_t seed, std::size_t round) {
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed, kStreamOfRounds + round);
  for (std::size_t left = rows; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace syncopate::experiments

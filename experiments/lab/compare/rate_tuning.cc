#include "experiments/lab/compare/rate_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "experiments/lab/compare/row_runner.h"
#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Sets the rate with which the row trains to the one that the rule derives from `rate`.
void set_rate(PlannedRun& run, const RateTuning& tuning, double rate) {
  run.base_rate = rate;
  run.config.learning_rate = ruled_rate(tuning.rule, rate, samples_an_update(run.config), tuning.reference_samples);
}

// Returns the trials of one row, by ascending rate, without results.
std::vector<RateTrial> trials_of(const RateTuning& tuning, PlannedRun run) {
  std::vector<RateTrial> trials;
  for (const double rate : rates_to_try(tuning.grid, run.base_rate)) {
    set_rate(run, tuning, rate);
    trials.push_back({.label = run.label, .rate = run.config.learning_rate, .quality = {}, .loss = {}});
  }
  return trials;
}

std::string name_of(const RateTrial& trial) { return fmt::format("{} at {}", trial.label, trial.rate); }

// A rate is chosen by what is held out, where anything is.
void add_result(RateTrial& trial, const RunReport& report) {
  const std::optional<ValidationFigures>& held_out = report.final_validation;
  trial.quality.push_back(held_out ? held_out->quality() : final_headline(report).value_or(kNone));
  trial.loss.push_back(held_out ? held_out->loss : report.final_test_loss.value_or(kNone));
}

std::string edge_text(const RateChoice& choice) {
  if (!choice.is_lowest && !choice.is_highest) return {};
  return fmt::format(", the {} of those tried: a better one may lie beyond", choice.is_lowest ? "lowest" : "highest");
}

// Lower is better.
using Score = std::tuple<std::size_t, double, double>;

bool has_diverged(const RateTrial& trial, std::size_t seed) {
  return !std::isfinite(trial.quality[seed]) || !std::isfinite(trial.loss[seed]);
}

Score score_of(const RateTrial& trial) {
  std::vector<double> quality, loss;
  for (std::size_t seed = 0; seed < trial.quality.size(); ++seed) {
    if (has_diverged(trial, seed)) continue;
    quality.push_back(trial.quality[seed]);
    loss.push_back(trial.loss[seed]);
  }
  return {trial.quality.size() - quality.size(), -mean(quality), mean(loss)};
}

}  // namespace

std::optional<RateChoice> choose_rate(std::span<const RateTrial> trials) {
  if (trials.empty()) return std::nullopt;
  std::vector<Score> scores;
  for (const RateTrial& trial : trials) scores.push_back(score_of(trial));
  const auto best = static_cast<std::size_t>(std::ranges::min_element(scores) - scores.begin());
  if (std::get<0>(scores[best]) == trials[best].quality.size()) return std::nullopt;
  return RateChoice{.best = best, .is_lowest = best == 0, .is_highest = best + 1 == trials.size()};
}

int seeds_a_trial(int rounds) { return std::min(rounds, 3); }

TunedRates tune_rates(const RateTuning& tuning, std::vector<PlannedRun>& runs, RowRunner& runner, Console& console,
                      ComparisonReport& report) {
  std::vector<std::vector<RateTrial>> trials;
  for (const PlannedRun& run : runs) trials.push_back(trials_of(tuning, run));
  const int seeds = seeds_a_trial(tuning.rounds);
  const std::size_t all = runs.size() * tuning.grid.values.size() * static_cast<std::size_t>(seeds);
  std::size_t number = 0, width = 0;
  for (const std::vector<RateTrial>& of_row : trials) {
    for (const RateTrial& trial : of_row) width = std::max(width, name_of(trial).size());
  }
  for (int seed = 0; seed < seeds; ++seed) {
    for (std::size_t row = 0; row < runs.size(); ++row) {
      for (RateTrial& trial : trials[row]) {
        ResolvedRun config = runs[row].config;
        config.learning_rate = trial.rate;
        config.seed += static_cast<std::uint64_t>(tuning.rounds + seed);
        config.output = fmt::format("{}/{}-{}-{}", tuning.folder, folder_of(trial.label), trial.rate, seed + 1);
        const std::string what =
            fmt::format("trial {:>{}}/{}: {:<{}}", ++number, fmt::format("{}", all).size(), all, name_of(trial), width);
        const JobResult result = runner.run(row, what, config);
        if (result.exit == ExitCode::kNotFinite) {
          trial.quality.push_back(kNone);
          trial.loss.push_back(kNone);
          continue;
        }
        if (result.exit != ExitCode::kSuccess) {
          report.outcome = fmt::format("{}, trial {} of {}: {}", name_of(trial), number, all, result.verdict);
          return {.exit = result.exit, .diverged = {}};
        }
        add_result(trial, result.reports.front());
      }
    }
  }
  TunedRates tuned;
  const auto note = [&](std::string line) {
    console.say(line);
    report.notes.push_back(std::move(line));
  };
  for (std::size_t row = 0; row < runs.size(); ++row) {
    report.trials.insert(report.trials.end(), trials[row].begin(), trials[row].end());
    const std::optional<RateChoice> choice = choose_rate(trials[row]);
    if (!choice) {
      tuned.diverged.push_back(row);
      note(fmt::format("{}: diverged at all rates of --tune-rate, and is not measured", runs[row].label));
      continue;
    }
    const std::vector<double> rates = rates_to_try(tuning.grid, runs[row].base_rate);
    set_rate(runs[row], tuning, rates[choice->best]);
    note(fmt::format("{}: learning rate {} was best of {} to {}{}", runs[row].label, trials[row][choice->best].rate,
                     trials[row].front().rate, trials[row].back().rate, edge_text(*choice)));
  }
  return tuned;
}

}  // namespace syncopate::experiments

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/lab/compare/compare.h"
#include "experiments/lab/compare/rate_tuning.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

// Formats a number for people.
std::string number(double value) { return fmt::format("{:.6g}", value); }

std::string rate_line(const ComparisonJob& job) {
  if (job.rate_rule == RateRule::kPerUpdate) return "rates: per-update, each row trains with the rate as it is given\n";
  return fmt::format(
      "rates: per-sample, rate / samples an update is the same as in a synchronous update of {} samples\n",
      job.reference_samples);
}

std::string trials_line(const ComparisonJob& job) {
  const std::size_t rates = job.tune_rate->values.size();
  const int seeds = seeds_a_trial(job.base.repeat);
  return fmt::format(
      "then {} trials of --tune-rate: {} rows, {} rates ({}{}), {} seed{}; then, each row with its best,\n",
      job.runs.size() * rates * static_cast<std::size_t>(seeds), job.runs.size(), rates,
      job.tune_rate->factors ? "its own x " : "", fmt::join(job.tune_rate->values, ", "), seeds, seeds == 1 ? "" : "s");
}

}  // namespace

std::string comparison_plan(const ComparisonJob& job) {
  std::vector<std::vector<std::string>> table = {{"row", "learning rate", "samples an update", "rate / 1000 samples"}};
  for (const PlannedRun& run : job.runs) {
    const ResolvedRun& config = run.config;
    const std::int64_t samples = samples_an_update(config);
    table.push_back({run.label, number(config.learning_rate), std::to_string(samples),
                     number(1000 * config.learning_rate / static_cast<double>(samples))});
  }
  std::string text = text_table(table);
  for (const std::string& line : job.left_out) text += line + "\n";
  text += "\n" + rate_line(job);
  text += "first a proof that local, allreduce and ps sync follow the same curve\n";
  if (job.tune_rate) text += trials_line(job);
  const auto rounds = static_cast<std::size_t>(job.base.repeat);
  text += fmt::format("{}{} round{} of {} runs each, {} in all\n", job.auto_rounds ? "up to " : "", rounds,
                      rounds == 1 ? "" : "s", job.runs.size(), rounds * job.runs.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<std::string> labels;
    for (const std::size_t row : round_order(job.runs.size(), job.base.seed, round)) {
      labels.push_back(job.runs[row].label);
    }
    text += fmt::format("  round {}, seed {}: {}\n", round + 1, job.base.seed + round, fmt::join(labels, ", "));
  }
  return text;
}

}  // namespace syncopate::experiments

#include "experiments/lab/compare/rate_choice.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

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

}  // namespace syncopate::experiments

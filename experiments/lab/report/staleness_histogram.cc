#include "experiments/lab/report/staleness_histogram.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace syncopate::experiments {
namespace {

constexpr std::size_t kBinsShown = 5;

// The mean of losses, each of a batch of so many samples.
struct Mean {
  double sum = 0;
  double samples = 0;
  void add(double loss, const StepRecord& step) {
    sum += loss * static_cast<double>(step.samples);
    samples += static_cast<double>(step.samples);
  }
  double value() const { return sum / samples; }
};

}  // namespace

std::vector<StalenessBin> staleness_histogram(std::span<const StepRecord* const> steps) {
  // A pipeline's last stage alone has losses: where only others are stale, these tell nothing.
  const auto is_stale = [](bool with_loss) {
    return [with_loss](const StepRecord* step) {
      return step->sync.staleness_mean > 0 && (step->samples > 0) == with_loss;
    };
  };
  if (std::ranges::any_of(steps, is_stale(false)) && std::ranges::none_of(steps, is_stale(true))) return {};
  std::map<std::int64_t, Mean> of_epoch;
  for (const StepRecord* step : steps) {
    if (step->samples > 0) of_epoch[step->epoch].add(step->loss, *step);
  }
  struct Losses {
    Mean loss, excess;
    std::int64_t steps = 0;
  };
  std::map<std::int64_t, Losses> of_staleness;
  for (const StepRecord* step : steps) {
    if (step->samples == 0) continue;
    Losses& losses = of_staleness[std::llround(step->sync.staleness_mean)];
    losses.loss.add(step->loss, *step);
    losses.excess.add(step->loss - of_epoch[step->epoch].value(), *step);
    ++losses.steps;
  }
  std::vector<StalenessBin> bins;
  for (const auto& [staleness, losses] : of_staleness) {
    bins.push_back({staleness, losses.steps, losses.loss.value(), losses.excess.value()});
  }
  return bins;
}

std::string staleness_text(std::span<const StalenessBin> bins) {
  if (bins.empty() || bins.back().staleness == 0) return {};
  double all = 0;
  for (const StalenessBin& bin : bins) all += static_cast<double>(bin.steps);
  std::string text;
  for (std::size_t begin = 0; begin < bins.size();) {
    const bool is_rest = begin + 1 == kBinsShown;
    const std::size_t end = is_rest ? bins.size() : begin + 1;
    double steps = 0, loss = 0;
    for (const StalenessBin& bin : bins.subspan(begin, end - begin)) {
      steps += static_cast<double>(bin.steps);
      loss += bin.loss * static_cast<double>(bin.steps);
    }
    const std::int64_t least = bins[begin].staleness, most = bins[end - 1].staleness;
    text += fmt::format("{}{}: {:.1f} %{}", text.empty() ? "" : ", ",
                        least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most),
                        100 * steps / all, std::isnan(loss) ? "" : fmt::format(" loss {:.3g}", loss / steps));
    begin = end;
  }
  return text;
}

}  // namespace syncopate::experiments

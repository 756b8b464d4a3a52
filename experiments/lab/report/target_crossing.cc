#include "experiments/lab/report/target_crossing.h"

#include <algorithm>
#include <vector>

namespace syncopate::experiments {
namespace {

double headline(const EvalRecord& eval) { return headline_of(eval.accuracy, eval.figures); }

}  // namespace

std::optional<TargetCrossing> target_crossing(std::span<const EvalRecord> evals, double target) {
  std::vector<const EvalRecord*> ascending;
  for (const EvalRecord& eval : evals) ascending.push_back(&eval);
  std::ranges::stable_sort(ascending, {}, &EvalRecord::training_seconds);
  const auto reached = std::ranges::find_if(ascending, [&](const auto* eval) { return headline(*eval) >= target; });
  if (reached == ascending.end()) return std::nullopt;
  const EvalRecord& after = **reached;
  const auto samples_after = static_cast<double>(after.samples_seen);
  if (reached == ascending.begin())
    return TargetCrossing{after.training_seconds, samples_after, after.training_seconds, samples_after};
  const EvalRecord& before = **(reached - 1);
  const auto samples_before = static_cast<double>(before.samples_seen);
  const double part = (target - headline(before)) / (headline(after) - headline(before));
  TargetCrossing crossing{.resolution_seconds = after.training_seconds - before.training_seconds,
                          .resolution_samples = samples_after - samples_before};
  crossing.seconds = before.training_seconds + part * crossing.resolution_seconds;
  crossing.samples = samples_before + part * crossing.resolution_samples;
  return crossing;
}

}  // namespace syncopate::experiments

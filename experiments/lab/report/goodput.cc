#include "experiments/lab/report/goodput.h"

#include "experiments/lab/report/kept_steps.h"

namespace syncopate::experiments {
namespace {

double seconds_computed(const StepRecord& step) { return seconds(step.forward + step.backward + step.sync.optimizer); }

}  // namespace

std::optional<double> goodput(std::span<const WorkerSteps> workers, double training_seconds) {
  double computed = 0, kept = 0;
  for (const WorkerSteps& worker : workers) {
    for (const StepRecord& step : worker.steps) computed += seconds_computed(step);
    for (const StepRecord* step : kept_steps(worker.steps)) kept += seconds_computed(*step) * used_part(*step);
  }
  if (computed <= 0 || training_seconds <= 0) return std::nullopt;
  return kept / (static_cast<double>(workers.size()) * training_seconds);
}

}  // namespace syncopate::experiments

#include "experiments/lab/report/recovery_times.h"

#include <algorithm>

namespace syncopate::experiments {

RecoveryTimes recovery_after(TimePoint fault, std::span<const WorkerSteps> workers) {
  RecoveryTimes times;
  for (const WorkerSteps& worker : workers) {
    const auto begun_after = [&](const StepRecord& step) { return step.end - step.total >= fault; };
    const auto found = std::ranges::find_if(worker.steps, begun_after);
    if (found == worker.steps.end()) continue;
    const Duration after = found->end - fault;
    times.first = std::min(times.first.value_or(after), after);
    times.all = std::max(times.all.value_or(after), after);
  }
  return times;
}

}  // namespace syncopate::experiments

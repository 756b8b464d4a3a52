#include "experiments/lab/report/steady_window.h"

#include <algorithm>

namespace syncopate::experiments {

std::int64_t warm_from(const WorkerSteps& worker, std::int64_t warmup_steps) {
  return (worker.steps.empty() ? 0 : worker.steps.front().step) + warmup_steps;
}

std::optional<TimeWindow> steady_window(std::span<const WorkerSteps> workers, std::int64_t warmup_steps) {
  TimeWindow window;
  bool any = false;
  for (const WorkerSteps& worker : workers) {
    const std::int64_t warm = warm_from(worker, warmup_steps);
    const auto first = std::ranges::find_if(worker.steps, [&](const auto& s) { return s.step >= warm; });
    if (first == worker.steps.end()) {
      if (worker.lost) continue;
      return std::nullopt;
    }
    window.begin = std::max(window.begin, first->end - first->total);
    if (worker.lost) continue;
    window.end = std::min(window.end, worker.steps.back().end);
    any = true;
  }
  if (!any || window.end <= window.begin) return std::nullopt;
  return window;
}

std::vector<StepOfWorker> steps_within(std::span<const WorkerSteps> workers, const TimeWindow& window,
                                       std::int64_t warmup_steps) {
  std::vector<StepOfWorker> inside;
  for (const WorkerSteps& worker : workers) {
    const std::int64_t warm = warm_from(worker, warmup_steps);
    for (const StepRecord& step : worker.steps) {
      const bool is_inside = step.step >= warm && step.end > window.begin && step.end <= window.end;
      if (is_inside) inside.push_back({worker.rank, &step});
    }
  }
  return inside;
}

std::vector<StepOfWorker> all_steps(std::span<const WorkerSteps> workers) {
  std::vector<StepOfWorker> all;
  for (const WorkerSteps& worker : workers) {
    for (const StepRecord& step : worker.steps) all.push_back({worker.rank, &step});
  }
  return all;
}

}  // namespace syncopate::experiments

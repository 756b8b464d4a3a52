#include "experiments/lab/report/kept_steps.h"

#include <limits>

namespace syncopate::experiments {

std::vector<const StepRecord*> kept_steps(std::span<const StepRecord> steps) {
  std::vector<const StepRecord*> kept;
  std::int64_t undone_from = std::numeric_limits<std::int64_t>::max();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->step >= undone_from) continue;
    undone_from = step->step;
    kept.push_back(&*step);
  }
  return kept;
}

double used_part(const StepRecord& step) { return step.sync.skipped > 0 ? 0 : 1 - step.sync.dropped; }

}  // namespace syncopate::experiments

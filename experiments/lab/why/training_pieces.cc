#include "experiments/lab/why/training_pieces.h"

#include <algorithm>
#include <cmath>

namespace syncopate::experiments {

std::vector<TrainingPiece> training_pieces(const RecordedSteps& recorded, std::size_t most) {
  const std::vector<StepOfWorker> steps = recorded.by_end();
  const std::size_t each = most == 0 ? 0 : (steps.size() + most - 1) / most;
  std::vector<TrainingPiece> pieces;
  double samples = 0;
  for (std::size_t begin = 0; begin < steps.size(); begin += each) {
    const std::size_t end = std::min(begin + each, steps.size());
    double sum = 0, learnt = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const StepRecord& step = *steps[i].step;
      const auto of_step = static_cast<double>(step.samples);
      samples += of_step;
      if (!std::isfinite(step.loss)) continue;
      sum += step.loss * of_step;
      learnt += of_step;
    }
    if (learnt == 0) continue;
    pieces.push_back({.seconds = seconds(steps[end - 1].step->end.time_since_epoch()),
                      .steps = static_cast<double>(end),
                      .samples = samples,
                      .loss = sum / learnt});
  }
  return pieces;
}

std::size_t pieces_of(std::size_t steps, int workers, std::size_t most) {
  constexpr std::size_t kStepsOfAPiece = 4;  // of each worker, at least
  return std::clamp<std::size_t>(steps / (kStepsOfAPiece * static_cast<std::size_t>(std::max(1, workers))), 1, most);
}

}  // namespace syncopate::experiments

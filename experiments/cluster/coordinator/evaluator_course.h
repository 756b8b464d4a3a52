// EvaluatorCourse: what becomes of the evaluator when it is lost, and of what it was to evaluate. Pure.
//
// Training needs no evaluation: a run goes on without one, and says which are missing. The evaluator is started again
// first, in every mode, since it stands beside those that train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/cluster/coordinator/evaluation_backlog.h"

namespace syncopate::experiments {

class EvaluatorCourse {
 public:
  // So often it is started again without an evaluation in between, each time after a longer pause.
  static constexpr int kMostStarts = 3;

  struct Loss {
    std::optional<Duration> start_after;  // none: it is not started again
    std::string consequence;              // for a person, behind what is said of the loss
  };

  // Weights may wait in `most_bytes`. `has_target`: training is to end with an accuracy.
  EvaluatorCourse(std::size_t most_bytes, bool has_target) : backlog_(most_bytes), has_target_(has_target) {}

  const EvaluationBacklog& backlog() const { return backlog_; }
  // It is there, or will be again.
  bool evaluates() const { return !backlog_.given_up(); }

  void on_snapshot(std::int64_t point, bool final, std::size_t bytes) { backlog_.on_snapshot(point, final, bytes); }
  // False where nothing waited for that.
  bool on_evaluation(std::int64_t point, bool final);
  // Whether more weights are to be evaluated: not where too many wait.
  bool wants_snapshots() const { return evaluates() && backlog_.has_room(); }

  Loss on_lost();
  // What waits is missing from now on, and all that comes. What is to be said of that.
  std::string give_up();

 private:
  EvaluationBacklog backlog_;
  const bool has_target_;
  int starts_ = 0;  // since its last evaluation
};

}  // namespace syncopate::experiments

// EvaluatorPolicy: the policy for the loss of the evaluator, and for the snapshots that it had to evaluate. Pure.
//
// Training needs no evaluation: a run goes on without an evaluator, and says which evaluations are missing. A lost
// evaluator is first restarted, in every mode, since it is independent of the processes that train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/cluster/coordinator/evaluation_backlog.h"

namespace syncopate::experiments {

class EvaluatorPolicy {
 public:
  // How often it is restarted without an evaluation in between, each time after a longer pause.
  static constexpr int kMostStarts = 3;

  struct Loss {
    std::optional<Duration> start_after;  // none: it is not restarted
    std::string consequence;              // for a person; follows the report of the loss
  };

  // Weights may wait in `most_bytes`. `has_evaluator`: the run has one; nothing is missing in a run that never had any.
  // `has_target`: training is to end at an accuracy.
  EvaluatorPolicy(std::size_t most_bytes, bool has_evaluator, bool has_target)
      : backlog_(most_bytes), has_evaluator_(has_evaluator), has_target_(has_target) {}

  const EvaluationBacklog& backlog() const { return backlog_; }
  // Returns whether it runs, or will run again.
  bool evaluates() const { return has_evaluator_ && !backlog_.given_up(); }

  void on_snapshot(std::int64_t point, bool final, std::size_t bytes) {
    if (has_evaluator_) backlog_.on_snapshot(point, final, bytes);
  }
  // Returns false if no snapshot waited for that.
  bool on_evaluation(std::int64_t point, bool final);
  // Returns whether more weights should be evaluated: not if too many wait.
  bool wants_snapshots() const { return evaluates() && backlog_.has_room(); }

  Loss on_lost();
  // Everything that waits, or arrives later, is now missing. Returns the text that says so.
  std::string give_up();

 private:
  EvaluationBacklog backlog_;
  const bool has_evaluator_;
  const bool has_target_;
  int starts_ = 0;  // since its last evaluation
};

}  // namespace syncopate::experiments

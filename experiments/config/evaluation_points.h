// EvaluationPoints: the points of a job at which its weights are evaluated, counted from 1. Pure.
//
// Points of steps and epochs lie along the job (a step is one of all workers), those of seconds along the time since
// training began. The final weights, which are always evaluated, are no point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/config/evaluation_interval.h"

namespace syncopate::experiments {

struct JobLength {
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 1;
};

class EvaluationPoints {
 public:
  // A run that is to reach an accuracy is evaluated so often at least, the final weights included, so that the time to
  // it is known within a twentieth of the run.
  static constexpr std::int64_t kLeastForATarget = 20;

  // None asked for: each epoch; with a target, equal parts of an epoch, as few as make kLeastForATarget.
  EvaluationPoints(const std::optional<EvaluationInterval>& asked, bool has_target, const JobLength& job);

  // How many points the job has come to with `steps` of its steps, `elapsed` after training began. It has no point at
  // its end.
  std::int64_t passed(double steps, Duration elapsed) const;
  // Of the whole job; by time it is not known before the end.
  std::optional<std::int64_t> all() const;
  // "every 0.5 epochs (117 steps)", "every 2 s".
  std::string to_text() const;

 private:
  JobLength job_;
  EvaluationInterval interval_;
  double stride_ = 0;  // steps from one point to the next; 0: by time
};

}  // namespace syncopate::experiments

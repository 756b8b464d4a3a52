// EvaluationPoints: the points of a job at which its weights are evaluated, counted from 1. Pure.
//
// Points given in steps or epochs lie along the job, where one step is a step of all workers. Points given in seconds
// lie along the time since training began. The final weights are always evaluated and do not count as a point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/config/interval.h"

namespace syncopate::experiments {

struct JobLength {
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 1;
};

class EvaluationPoints {
 public:
  // The least number of evaluations, the final weights included, of a run that has a target accuracy. The time to the
  // target is then known within a twentieth of the run.
  static constexpr std::int64_t kLeastForATarget = 20;

  // If `asked` is empty, evaluates at each epoch. With a target it divides the epoch into equal parts, as few as make
  // kLeastForATarget evaluations.
  EvaluationPoints(const std::optional<EvaluationInterval>& asked, bool has_target, const JobLength& job);

  // Returns how many points the job has reached after `steps` of its steps and `elapsed` since training began. There is
  // no point at the end of the job.
  std::int64_t passed(double steps, Duration elapsed) const;
  // Returns the number of points of the whole job. It is empty for points given in seconds, since it is not known
  // before the end.
  std::optional<std::int64_t> all() const;
  // Returns, for example, "every 0.5 epochs (117 steps)" or "every 2 s".
  std::string to_text() const;

 private:
  JobLength job_;
  EvaluationInterval interval_;
  double stride_ = 0;  // steps from one point to the next; 0: points are in seconds
};

}  // namespace syncopate::experiments

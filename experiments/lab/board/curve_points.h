// CurvePoints: turns the steps of all workers into the points of curves over the steps of the job, few enough to be
// drawn: about a thousand in a run. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"
#include "common/step_record.h"

namespace syncopate::experiments {

// Means over the steps since the point before, of losses weighted by samples, of the others by steps.
struct CurvePoint {
  std::int64_t step = 0;  // steps of the job that had been begun
  TimePoint at{};         // when the last of these steps ended
  double loss = 0;
  double accuracy = 0;
  double samples_per_second = 0;  // of all workers
  double step_ms = 0;
  double wait_ms = 0;
  double staleness = 0;
};

class CurvePoints {
 public:
  // The job has `total_steps` steps, of `workers` batches each; a run that resumes begins with `first_step`.
  CurvePoints(int workers, std::int64_t total_steps, std::int64_t first_step);

  // Training begins.
  void begin(TimePoint origin) { last_ = {.step = last_.step, .at = origin}; }
  // Adds a step of some worker. Steps must be in order of their ends. Returns a point when it is due: after a
  // thousandth of the job's steps and as many as there are workers, or after 10 s.
  std::optional<CurvePoint> add(const StepRecord& step);
  // Returns the point of the steps that are left; none if there are none.
  std::optional<CurvePoint> rest();

 private:
  CurvePoint take();

  std::int64_t workers_;
  std::int64_t steps_a_point_;
  CurvePoint last_;  // the point before, of which step and time count
  CurvePoint sum_;   // since then
  double samples_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace syncopate::experiments

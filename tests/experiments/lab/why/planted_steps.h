// Steps as a run records them, made up so that what they should come to is known.
#pragma once

#include <algorithm>
#include <vector>

#include "experiments/lab/why/run_pace.h"
#include "experiments/lab/why/step_row.h"

namespace syncopate::experiments {

// What sums of a few figures may be off by.
inline constexpr double kExact = 1e-9;

// Steps of batches of 10 samples, unless they are given another number.
// One step of each worker after the other, which all begin when the last exchange has ended, as synchronous ones do: a
// worker's wait lasts until `exchange` after the last one's gradients.
class PlantedSteps {
 public:
  explicit PlantedSteps(int workers, double samples = 10) : next_(static_cast<std::size_t>(workers)) {
    for (StepRow& row : next_) row.samples = samples;
  }

  // What the next step of worker `worker` is like; `end`, `total`, `wait` and `communication` follow from it.
  StepRow& operator[](int worker) { return next_[static_cast<std::size_t>(worker)]; }

  void step(double exchange) {
    double last = 0;
    const auto busy = [](const StepRow& row) { return row.data + row.forward + row.backward + row.straggle; };
    for (const StepRow& row : next_) last = std::max(last, busy(row));
    for (std::size_t worker = 0; worker < next_.size(); ++worker) {
      StepRow row = next_[worker];
      row.worker = static_cast<int>(worker);
      row.step = step_;
      row.wait = last - busy(row) + exchange;
      row.communication = row.wait;
      row.total = busy(row) + row.wait + row.optimizer;
      row.end = begin_ + row.total;
      rows_.push_back(row);
    }
    ++step_;
    begin_ = rows_.back().end;
  }

  const std::vector<StepRow>& rows() const { return rows_; }

 private:
  std::vector<StepRow> next_;
  std::vector<StepRow> rows_;
  std::int64_t step_ = 0;
  double begin_ = 0;
};

// Workers that all wait for all in each step.
inline RunPace in_step(int workers) { return {.workers = workers, .batch_size = 10, .lead = 0, .quorum = workers}; }

}  // namespace syncopate::experiments

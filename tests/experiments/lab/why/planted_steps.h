// Steps as a run records them, made up so that what they should come to is known.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "experiments/lab/why/recorded_steps.h"
#include "experiments/lab/why/run_pace.h"

namespace syncopate::experiments {

// What sums of a few figures may be off by, in milliseconds: records have whole nanoseconds.
inline constexpr double kExact = 1e-5;

// A step in milliseconds.
struct PlantedStep {
  int worker = 0;
  std::int64_t step = 0;
  double end = 0;  // since training began
  double total = 0, data = 0, forward = 0, backward = 0, straggle = 0, wait = 0, optimizer = 0;
  double communication = 0, codec = 0, backward_codec = 0;
  double launch = 0, copy = 0;  // on a device
  std::int64_t bytes_out = 0, bytes_in = 0;
  double dropped = 0;
  std::int64_t samples = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> core_wait = {};
  double compute_core_wait = 0;
  int last_shard = -1;
  double last_shard_alone = 0;
};

inline StepRecord record_of(const PlantedStep& planted) {
  const auto of_ms = [](double ms) { return from_seconds(ms / 1e3); };
  StepRecord record;
  record.step = planted.step;
  record.end = TimePoint(of_ms(planted.end));
  record.total = of_ms(planted.total);
  record.data = of_ms(planted.data);
  record.forward = of_ms(planted.forward);
  record.backward = of_ms(planted.backward);
  record.straggle = of_ms(planted.straggle);
  if (planted.core_wait) record.core_wait = of_ms(*planted.core_wait);
  record.compute_core_wait = of_ms(planted.compute_core_wait);
  record.launch = of_ms(planted.launch);
  record.sync = {.exposed_wait = of_ms(planted.wait),
                 .communication = of_ms(planted.communication),
                 .optimizer = of_ms(planted.optimizer),
                 .codec = of_ms(planted.codec),
                 .backward_codec = of_ms(planted.backward_codec),
                 .copy = of_ms(planted.copy),
                 .bytes_out = planted.bytes_out,
                 .bytes_in = planted.bytes_in,
                 .dropped = planted.dropped,
                 .last_shard = planted.last_shard,
                 .last_shard_alone = of_ms(planted.last_shard_alone)};
  record.samples = planted.samples;
  record.loss = planted.loss;
  return record;
}

inline RecordedSteps recorded_of(const std::vector<PlantedStep>& planted) {
  RecordedSteps steps;
  for (const PlantedStep& step : planted) steps.of_workers[step.worker].push_back(record_of(step));
  return steps;
}

// Steps of batches of 10 samples, unless they are given another number.
// One step of each worker after the other, which all begin when the last exchange has ended, as synchronous ones do: a
// worker's wait lasts until `exchange` after the last one's gradients.
class PlantedSteps {
 public:
  explicit PlantedSteps(int workers, std::int64_t samples = 10) : next_(static_cast<std::size_t>(workers)) {
    for (PlantedStep& step : next_) step.samples = samples;
  }

  // What the next step of worker `worker` is like; `end`, `total`, `wait` and `communication` follow from it.
  PlantedStep& operator[](int worker) { return next_[static_cast<std::size_t>(worker)]; }

  void step(double exchange) {
    double last = 0;
    const auto busy = [](const PlantedStep& step) { return step.data + step.forward + step.backward + step.straggle; };
    for (const PlantedStep& step : next_) last = std::max(last, busy(step));
    for (std::size_t worker = 0; worker < next_.size(); ++worker) {
      PlantedStep step = next_[worker];
      step.worker = static_cast<int>(worker);
      step.step = step_;
      step.wait = last - busy(step) + exchange;
      step.communication = step.wait;
      step.total = busy(step) + step.wait + step.optimizer;
      step.end = begin_ + step.total;
      planted_.push_back(step);
    }
    ++step_;
    begin_ = planted_.back().end;
  }

  const std::vector<PlantedStep>& planted() const { return planted_; }
  RecordedSteps steps() const { return recorded_of(planted_); }

 private:
  std::vector<PlantedStep> next_;
  std::vector<PlantedStep> planted_;
  std::int64_t step_ = 0;
  double begin_ = 0;
};

// Workers that all wait for all in each step.
inline RunPace in_step(int workers) { return {.workers = workers, .batch_size = 10, .lead = 0, .quorum = workers}; }

}  // namespace syncopate::experiments

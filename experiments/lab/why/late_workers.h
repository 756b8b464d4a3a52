// LateWorkers: for whom a worker waited in a step, and what had made that one late. Pure.
//
// Under a rule by which workers wait for each other, a worker's wait in its step s cannot end before the last of those
// that the rule asks for has finished its gradients of step s - lead. So the part of the wait until then is for that
// worker, and the rest for the exchange. That worker is late for what took it longer than the one who waits: data, a
// delay, cores that it had to wait for, computing; or because the exchange of its step before ended later. The wait is
// divided among these in proportion.
#pragma once

#include <array>
#include <vector>

#include "experiments/lab/why/recorded_steps.h"
#include "experiments/lab/why/run_pace.h"

namespace syncopate::experiments {

enum class Lateness { kData, kStraggle, kCores, kCompute, kExchange };
inline constexpr std::size_t kLatenesses = 5;

struct WaitForWorker {
  double ms = 0;    // of the step's wait
  int worker = -1;  // -1: for nobody
  // The wait's parts by Lateness, which add up to ms.
  std::array<double, kLatenesses> parts{};
  // The step before of the worker waited for, whose exchange made it late; null if there is none.
  const StepRecord* before = nullptr;
};

class LateWorkers {
 public:
  // Both must outlive this object.
  LateWorkers(const RecordedSteps& recorded, const RunPace& pace);

  WaitForWorker wait_of(const StepOfWorker& waiting) const;

  // Where all workers exchange with all in each step, none has done so before each has taken its part in it. Returns
  // for how long some other worker was without a core in its wait of that step, beyond what this one was itself; 0
  // under other rules.
  double others_without_core_ms(const StepRecord& made) const;

 private:
  struct Arrival {
    double ms = 0;
    int worker = -1;
  };
  using Causes = std::array<double, kLatenesses>;

  const StepRecord* step_of(int worker, std::int64_t step) const;
  // What took the worker's time in the steps since the last meeting, up to `step`.
  Causes causes_of(int worker, std::int64_t step) const;

  const RunPace& pace_;
  std::int64_t first_step_ = 0;
  std::vector<std::vector<const StepRecord*>> steps_;  // by worker and step; null where there is none
  std::vector<Arrival> awaited_;                       // by step: the last of those that are waited for
  std::vector<double> without_core_;                   // by step: the longest of all workers
};

// What of the step's forward and backward the worker computed, with a core, and without compressing gradients.
double computed_ms(const StepRecord& step);
// What of forward and backward it was without a core.
double computing_without_core_ms(const StepRecord& step);
// What of its wait it was ready to go on and had no core.
double woken_late_ms(const StepRecord& step);

}  // namespace syncopate::experiments

// Straggling: makes a worker as slow as its Stragglers require, by waits during its compute.
//
// On a slow machine a step not only ends later: each of its gradients is ready later. So the worker waits after its
// forward pass, before it passes on each bucket, and at the end of backward, until the step is as late as on such a
// machine. Extra time is added before backward; a factor stretches forward and backward evenly. What samples cost
// (data/sample_costs.h) is such a factor: no machine computes less for a cheap sample of ours, so what a pass has
// computed is waited for once more, times its cost.
#pragma once

#include <cstdint>
#include <functional>

#include "common/clock.h"
#include "worker/stragglers.h"

namespace syncopate::worker {

struct StragglingOptions {
  Stragglers stragglers;
  std::uint64_t seed = 1;
  int worker = 0;
  bool by_cost = false;                // whether each pass is waited for by what its samples cost
  Duration longest = Duration::max();  // of a step's delay
};

// For the compute thread.
class Straggling {
 public:
  // `wait` waits for a given time without using a core, and returns false as soon as it is told to end. The clock must
  // outlive this object.
  Straggling(StragglingOptions options, const Clock& clock, std::function<bool(Duration)> wait);

  // Marks the begin of the compute of step `step`.
  void begin_step(std::int64_t step);
  // What is computed from now on is a pass of this step over samples that cost so much in the mean.
  void begin_pass(double cost);
  // Excludes `waited` of the time since begin_step, which was not compute.
  void leave_out(Duration waited) { begin_ += waited; }
  // Waits as long as a slower machine would still need for what the step has computed so far. If a wait lasts too long,
  // as waits do when cores are scarce, the excess is subtracted from the next ones, so that the delays are right on
  // average. From the next step's no more than this step's delay is subtracted, so that one long hold-up is forgotten.
  void catch_up();

  Duration waited() const { return waited_; }        // in this step
  bool interrupted() const { return interrupted_; }  // a wait was interrupted; there are no more waits

 private:
  const StragglingOptions options_;
  const Clock& clock_;
  const std::function<bool(Duration)> wait_;
  Slowdown slowdown_;   // of this step; in a later pass its extra time is the delay of those before
  double stretch_ = 0;  // of every pass of this step
  TimePoint begin_{};
  Duration delay_{};   // of this step so far
  Duration waited_{};  // of this step
  Duration credit_{};  // excess of earlier waits
  bool interrupted_ = false;
};

}  // namespace syncopate::worker

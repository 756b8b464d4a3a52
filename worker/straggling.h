// Straggling: makes a worker as slow as its Stragglers say, by waits while it computes.
//
// A slow machine computes slowly: not only does its step end later, each of its gradients is ready later. So the worker
// catches up after its forward pass, before it hands over each bucket, and at the end of backward. By then the step is
// as late as it would be there: extra time lies before backward, a factor stretches forward and backward evenly.
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
  Duration longest = Duration::max();  // of a step's delay
};

// For the compute thread.
class Straggling {
 public:
  // `wait` waits so long without using a core, and returns false as soon as it is told to end. The clock outlives this.
  Straggling(StragglingOptions options, const Clock& clock, std::function<bool(Duration)> wait);

  // The compute of step `step` begins now.
  void begin_step(std::int64_t step);
  // Of the time since begin_step, so much was no compute.
  void leave_out(Duration waited) { begin_ += waited; }
  // What the step has computed so far is done now: waits as long as a slower machine would still be at it. What a wait
  // lasts too long, as waits do where cores are scarce, is taken off the next ones, so that the delays are right in the
  // mean; off the next step's no more than this step's delay, so that one that was held up for long is forgotten.
  void catch_up();

  Duration waited() const { return waited_; }        // in this step
  bool interrupted() const { return interrupted_; }  // a wait was; there are no more

 private:
  const StragglingOptions options_;
  const Clock& clock_;
  const std::function<bool(Duration)> wait_;
  Slowdown slowdown_;  // of this step
  TimePoint begin_{};
  Duration delay_{};   // of this step so far
  Duration waited_{};  // of this step
  Duration credit_{};  // what was waited too long before it
  bool interrupted_ = false;
};

}  // namespace syncopate::worker

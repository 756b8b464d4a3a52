// PassCosts: what messages cost that a worker sends and waits for inside its passes, beside its strategy's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/exposed_wait.h"
#include "common/status.h"
#include "common/sync_strategy.h"
#include "common/trace/tracer.h"

namespace syncopate::worker {

class PassCosts {
 public:
  // The tracer records waits, unless it is null. Both must outlive this.
  PassCosts(const Clock& clock, Tracer* tracer) : clock_(clock), tracer_(tracer) {}

  // A step begins, or its first backward: waits from now on are of that pass.
  void begin_forward(std::int64_t step) {
    step_ = step;
    began_ = clock_.now();
    within_ = &SyncStats::forward_wait;
  }
  void begin_backward() { within_ = &SyncStats::backward_wait; }
  // Between steps waits are of none, and do not count.
  void end_step() { within_ = nullptr; }
  std::int64_t step() const { return step_; }

  void count_bytes(std::int64_t out, std::int64_t in) {
    costs_.bytes_out += out;
    costs_.bytes_in += in;
  }
  // So many updates were made since those whose weights the step's gradients are of.
  void count_staleness(double mean, std::int64_t most) {
    costs_.staleness_mean = mean;
    costs_.staleness_max = most;
  }
  // Does the work, of which all time is a wait, and returns its status, which says in which step, and at `what`.
  template <typename Work>
  Status counted(const Work& work, const std::string& what) {
    const TraceSpan span(tracer_, {.kind = TraceKind::kWait, .number = step_});
    std::optional<ExposedWait> wait;
    if (within_ != nullptr) wait.emplace(clock_, costs_, within_);
    return Status(work()).in("step " + std::to_string(step_) + ": " + what);
  }

  // The same for work behind both passes.
  template <typename Work>
  Status counted_behind(const Work& work) {
    const ExposedWait wait(clock_, costs_, nullptr);
    return work();
  }

  // Returns what there was since the last call. Something was under way in all waits.
  SyncStats take() {
    costs_.communication = costs_.exposed_wait;
    return std::exchange(costs_, {});
  }
  // The same, and adds it to what the step has cost besides.
  void add_to(SyncStats& stats) {
    const SyncStats own = take();
    for (Duration SyncStats::*const time :
         {&SyncStats::exposed_wait, &SyncStats::forward_wait, &SyncStats::backward_wait, &SyncStats::pass_core_wait,
          &SyncStats::communication}) {
      stats.*time += own.*time;
    }
    stats.communication = std::min(stats.communication, clock_.now() - began_);  // both may be under way at once
    stats.bytes_out += own.bytes_out;
    stats.bytes_in += own.bytes_in;
    stats.staleness_mean += own.staleness_mean;
    stats.staleness_max += own.staleness_max;
  }

 private:
  const Clock& clock_;
  Tracer* const tracer_;
  std::int64_t step_ = 0;
  TimePoint began_{};  // the step
  SyncStats costs_;
  Duration SyncStats::*within_ = nullptr;  // the pass, as which waits count besides
};

}  // namespace syncopate::worker

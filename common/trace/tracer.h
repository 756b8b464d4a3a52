// Tracer: records the events of one process's traced steps, in memory that is reserved beforehand. What does not fit is
// counted. Code that may be traced holds a pointer to a tracer, which is null in a run that traces nothing: this costs
// one branch.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/trace/trace_event.h"

namespace syncopate {

class Tracer {
 public:
  // `capacity` events fit. A worker pushes after every `steps_a_push` steps, so that a server can tell by a push's
  // clock which step it ends. `clock`, the process's, must outlive the tracer.
  Tracer(const Clock& clock, TraceSteps steps, std::size_t capacity, std::int64_t steps_a_push = 1)
      : clock_(clock), steps_(steps), steps_a_push_(steps_a_push), events_(capacity) {}

  // What follows until take() may be called by any thread.

  // In which membership epoch this process is.
  void begin_membership(std::int64_t number) {
    membership_.store(static_cast<std::int32_t>(number), std::memory_order_relaxed);
  }
  // A step of this worker begins, or has ended.
  void begin_step(std::int64_t step) { step_.store(steps_.contains(step) ? step : kNone, std::memory_order_relaxed); }
  void end_step() { step_.store(kNone, std::memory_order_relaxed); }
  // Whether this worker is in a traced step, and in which; -1: in none.
  bool in_step() const { return step() != kNone; }
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }
  const TraceSteps& steps() const { return steps_; }
  // Whether the push with this clock (1: a worker's first) ends a traced step.
  bool traces_push(std::int64_t clock) const { return steps_.contains(clock * steps_a_push_ - 1); }

  TimePoint now() const { return clock_.now(); }
  // Records an event, with the membership epoch.
  void add(TraceEvent event) {
    const std::size_t place = added_.fetch_add(1, std::memory_order_relaxed);
    if (place >= events_.size()) return;
    event.membership = membership_.load(std::memory_order_relaxed);
    events_[place] = event;
  }

  struct Recorded {
    std::vector<TraceEvent> events;  // in no particular order
    std::int64_t dropped = 0;        // events that did not fit
  };
  // Returns what has been recorded, and forgets it; from now on nothing fits. No thread may add meanwhile.
  Recorded take() {
    const std::size_t added = added_.exchange(0, std::memory_order_relaxed);
    Recorded recorded{.events = std::move(events_), .dropped = 0};
    events_.clear();
    recorded.dropped = static_cast<std::int64_t>(added - std::min(added, recorded.events.size()));
    recorded.events.resize(std::min(added, recorded.events.size()));
    return recorded;
  }

 private:
  static constexpr std::int64_t kNone = -1;

  const Clock& clock_;
  const TraceSteps steps_;
  const std::int64_t steps_a_push_;
  std::atomic<std::int32_t> membership_{0};
  std::atomic<std::int64_t> step_{kNone};  // that is traced
  std::atomic<std::size_t> added_{0};      // events, including those that did not fit
  std::vector<TraceEvent> events_;
};

// TraceSpan: an event that lasts as long as this object, if a traced step is under way when it is made.
class TraceSpan {
 public:
  // `event` is recorded with its times set. `tracer` may be null, and must outlive the span.
  TraceSpan(Tracer* tracer, const TraceEvent& event)
      : TraceSpan(tracer, event, tracer != nullptr && tracer->in_step()) {}
  // The same, if `is_traced`.
  TraceSpan(Tracer* tracer, const TraceEvent& event, bool is_traced) : tracer_(is_traced ? tracer : nullptr) {
    if (tracer_ == nullptr) return;
    event_ = event;
    event_.begin = tracer_->now();
  }
  ~TraceSpan() { end(); }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  // The event ends here, and one of another kind, alike otherwise, begins.
  void next(TraceKind kind) {
    if (tracer_ == nullptr) return;
    record();
    event_.kind = kind;
    event_.begin = event_.end;
  }
  void end() {
    if (tracer_ == nullptr) return;
    record();
    tracer_ = nullptr;
  }
  // The event is not recorded after all.
  void discard() { tracer_ = nullptr; }
  // What is only known now. Null if nothing is recorded.
  TraceEvent* event() { return tracer_ == nullptr ? nullptr : &event_; }

 private:
  void record() {
    event_.end = tracer_->now();
    tracer_->add(event_);
  }

  Tracer* tracer_;
  TraceEvent event_;
};

}  // namespace syncopate

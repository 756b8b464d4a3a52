// CollectiveActivity: records for heartbeats which collective operation a rank is in, and since when.
#pragma once

#include <cstdint>
#include <mutex>

#include "common/clock.h"
#include "common/status.h"
#include "common/trace/tracer.h"

namespace syncopate::allreduce {

struct CollectiveOperation {
  enum class Stage { kJoining, kTraining, kLeaving };

  const char* name = "";  // "all_reduce"; a string literal
  Stage stage = Stage::kTraining;
  std::int64_t bytes = 0;  // of its buffer
  // While training:
  std::int64_t step = 0;
  std::size_t bucket = 0;  // from 0
  std::size_t buckets = 0;
};

struct CollectiveState {
  // Operations so far, including the last. All ranks carry out the same ones, so equal numbers name the same operation.
  std::int64_t begun = 0;
  CollectiveOperation last;
  bool under_way = false;  // the last operation has not ended
  Duration age{};          // since the last operation began
  int waits_for = -1;      // the rank that it waits for; -1 for none, or if it is unknown
};

// Written by the thread that carries out operations, read by the one that sends heartbeats.
class CollectiveActivity {
 public:
  // Operations of traced steps are recorded. Called before the first one; `tracer`, which may be null, must outlive
  // this object.
  void trace_to(Tracer* tracer) { tracer_ = tracer; }
  Tracer* tracer() const { return tracer_; }

  void begin(const CollectiveOperation& operation, TimePoint now) {
    const std::lock_guard lock(mutex_);
    ++state_.begun;
    state_.last = operation;
    state_.under_way = true;
    began_ = now;
  }
  // Not called for an operation that has failed: it remains the one that the rank was in.
  void end() {
    const std::lock_guard lock(mutex_);
    state_.under_way = false;
  }
  CollectiveState state(TimePoint now) const {
    const std::lock_guard lock(mutex_);
    CollectiveState state = state_;
    state.age = now - began_;
    return state;
  }

 private:
  mutable std::mutex mutex_;
  CollectiveState state_;
  TimePoint began_{};
  Tracer* tracer_ = nullptr;
};

// Returns the tracer that operations are recorded by; null where there is none. `activity` may be null, too.
inline Tracer* tracer_of(const CollectiveActivity* activity) {
  return activity == nullptr ? nullptr : activity->tracer();
}

// Carries out `work`, which is `operation`, and records it in `activity`, if that is not null.
template <typename Work>
Status watched(CollectiveActivity* activity, const Clock& clock, const CollectiveOperation& operation,
               const Work& work) {
  if (activity == nullptr) return work();
  activity->begin(operation, clock.now());
  const TraceSpan span(activity->tracer(),
                       {.kind = TraceKind::kCollective,
                        .item = operation.buckets > 0 ? static_cast<std::int32_t>(operation.bucket) : -1,
                        .number = operation.step,
                        .bytes = operation.bytes});
  const Status status = work();
  if (status.ok()) activity->end();
  return status;
}

}  // namespace syncopate::allreduce

// What a process has traced, as it goes to the coordinator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/clock.h"
#include "common/trace/trace_event.h"
#include "experiments/cluster/control/control.pb.h"

namespace syncopate::experiments {

// Returns batches of the events; the last one says how many did not fit.
std::vector<control::Trace> to_wire(std::span<const TraceEvent> events, std::int64_t dropped);

// TraceInbox: takes the batches of all processes. Each may send as many events as one keeps; what is more, or is no
// event that a process records, is dropped and counted. Pure.
class TraceInbox {
 public:
  struct Batch {
    std::vector<TraceEvent> events;
    std::int64_t dropped = 0;
  };

  // `capacity`: of events that a process keeps.
  TraceInbox(std::size_t processes, std::size_t capacity) : left_(processes, capacity) {}

  // `offset` is added to the times of the process.
  Batch take(std::size_t process, const control::Trace& trace, Duration offset);

 private:
  std::vector<std::size_t> left_;  // by process: events that it may still send
};

}  // namespace syncopate::experiments

// What several processes have recorded of the same messages and pushes, joined. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/clock.h"
#include "common/trace/trace_event.h"

namespace syncopate::experiments {

struct TraceMessage {
  const TraceEvent* sent = nullptr;
  std::size_t sender = 0;  // process
  std::size_t receiver = 0;
  TimePoint begin{};  // when its sender began to send it
  TimePoint end{};    // when its receiver had it, or came to it; not before `begin`, which clocks may suggest
};

// A push that was answered.
struct TracePush {
  const TraceEvent* sent = nullptr;
  std::vector<const TraceEvent*> updates;  // that it became part of: one at each home of its shard; none: it came late
  const TraceEvent* answered = nullptr;
};

struct TraceMessages {
  std::vector<TraceMessage> messages;  // by their begin
  std::vector<TracePush> pushes;
  std::int64_t unjoined = 0;  // events of sending, or of receiving, of which the other end is not there
};

// The events of each process, by their begin. The result refers to them.
TraceMessages join_messages(std::span<const std::vector<const TraceEvent*>> by_process);

}  // namespace syncopate::experiments

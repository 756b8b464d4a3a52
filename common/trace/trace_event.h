// TraceEvent: something that a process did in a traced step: when it began and ended, and what it was about.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace syncopate {

// What an event is. Behind each: what its numbers mean. Those that are not named are not set.
enum class TraceKind : std::uint8_t {
  // A worker's compute thread; number: its step. Parts lie within their step, the later kinds within these.
  kStep,
  kData,         // waiting for the batch
  kForward,      // includes the loss
  kBackward,     // includes passing on buckets
  kSynchronise,  // the strategy's end of the step: waits and updates
  kStraggle,     // a wait that slows this worker on purpose
  kWait,         // for others; item: the bucket, if it is for one
  kUpdate,       // by this worker; item: the bucket, if it is of one
  // A thread that carries out collective operations. item: bucket, if it is of one; number: step; bytes: of its
  // buffer.
  kCollective,
  kMeeting,  // of two: peer: the other rank; number: the step, -1 for none; bytes: of the weights
  // A part of it, sent or received. shard: this rank; peer: the other one; item: number of the part among those between
  // the two; number: the operation; value: which operations it counts among, those of which collective and kind; bytes.
  kPartSent,
  kPartTaken,
  // The way of a push and its answer. shard; item: chunk of the shard; peer: the worker that pushes; number: the push's
  // clock; bytes: of the payload.
  kPush,         // a worker sends it; value: version of the weights that it was computed from
  kPushTaken,    // a shard deals with it, from its receipt to the last answer that it made due
  kShardUpdate,  // a shard makes an update, within such; value: the version that this left
  kAnswerSent,   // a shard answers; value: the push's staleness
  kAnswerTaken,  // a worker copies the answer; value: the push's staleness
};
inline constexpr TraceKind kLastTraceKind = TraceKind::kAnswerTaken;

struct TraceEvent {
  TraceKind kind = TraceKind::kStep;
  std::int32_t membership = 0;  // number of the membership epoch
  std::int32_t shard = -1;      // -1: not set, here and below
  std::int32_t peer = -1;
  std::int32_t item = -1;
  std::int64_t number = 0;
  std::int64_t value = 0;
  std::int64_t bytes = 0;
  TimePoint begin{};
  TimePoint end{};  // not before `begin`

  bool operator==(const TraceEvent&) const = default;
};

// An event as numbers, in the order of its members, as it travels; times in nanoseconds.
using TraceNumbers = std::array<std::int64_t, 10>;
TraceNumbers numbers_of(const TraceEvent& event);
// Returns none if they are none that a process records.
std::optional<TraceEvent> trace_event_in(const TraceNumbers& numbers);

// The steps that are traced, of each worker, as it counts its own.
struct TraceSteps {
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool contains(std::int64_t step) const { return first <= step && step <= last; }
  bool operator==(const TraceSteps&) const = default;
};

}  // namespace syncopate

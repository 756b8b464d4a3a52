#include "experiments/cluster/control/trace_records.h"

#include <algorithm>
#include <optional>

namespace syncopate::experiments {
namespace {

constexpr std::size_t kEventsABatch = 1000;
// Times that no clock shows: half of what 64 bits hold, so that an offset cannot lead beyond them.
constexpr std::int64_t kLatest = std::int64_t{1} << 61;
constexpr std::int64_t kMostDropped = std::int64_t{1} << 50;

control::TraceEvent to_wire(const TraceEvent& event) {
  control::TraceEvent wire;
  wire.set_kind(static_cast<int>(event.kind));
  wire.set_membership_epoch(event.membership);
  wire.set_shard(event.shard);
  wire.set_peer(event.peer);
  wire.set_item(event.item);
  wire.set_number(event.number);
  wire.set_value(event.value);
  wire.set_bytes(event.bytes);
  wire.set_begin(event.begin.time_since_epoch().count());
  wire.set_length((event.end - event.begin).count());
  return wire;
}

bool is_time(std::int64_t nanoseconds) { return nanoseconds >= 0 && nanoseconds < kLatest; }

std::optional<TraceEvent> from_wire(const control::TraceEvent& wire, Duration offset) {
  const bool is_offset = -kLatest < offset.count() && offset.count() < kLatest;
  const bool is_event = wire.kind() >= 0 && wire.kind() <= static_cast<int>(kLastTraceKind) && wire.shard() >= -1 &&
                        wire.peer() >= -1 && wire.item() >= -1 && wire.bytes() >= 0 && is_time(wire.begin()) &&
                        is_time(wire.length()) && is_offset;
  if (!is_event) return std::nullopt;
  const TimePoint begin = TimePoint(Duration(wire.begin())) + offset;
  return TraceEvent{.kind = static_cast<TraceKind>(wire.kind()),
                    .membership = wire.membership_epoch(),
                    .shard = wire.shard(),
                    .peer = wire.peer(),
                    .item = wire.item(),
                    .number = wire.number(),
                    .value = wire.value(),
                    .bytes = wire.bytes(),
                    .begin = begin,
                    .end = begin + Duration(wire.length())};
}

}  // namespace

std::vector<control::Trace> to_wire(std::span<const TraceEvent> events, std::int64_t dropped) {
  std::vector<control::Trace> batches(1);
  for (const TraceEvent& event : events) {
    if (static_cast<std::size_t>(batches.back().events_size()) == kEventsABatch) batches.emplace_back();
    *batches.back().add_events() = to_wire(event);
  }
  batches.back().set_dropped(dropped);
  return batches;
}

TraceInbox::Batch TraceInbox::take(std::size_t process, const control::Trace& trace, Duration offset) {
  Batch batch{.events = {}, .dropped = std::clamp<std::int64_t>(trace.dropped(), 0, kMostDropped)};
  for (const control::TraceEvent& wire : trace.events()) {
    const std::optional<TraceEvent> event = left_[process] > 0 ? from_wire(wire, offset) : std::nullopt;
    if (event) {
      --left_[process];
      batch.events.push_back(*event);
    } else {
      ++batch.dropped;
    }
  }
  return batch;
}

}  // namespace syncopate::experiments

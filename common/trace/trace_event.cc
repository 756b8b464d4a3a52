#include "common/trace/trace_event.h"

#include <algorithm>
#include <limits>

namespace syncopate {

TraceNumbers numbers_of(const TraceEvent& event) {
  return {static_cast<std::int64_t>(event.kind),
          event.membership,
          event.shard,
          event.peer,
          event.item,
          event.number,
          event.value,
          event.bytes,
          event.begin.time_since_epoch().count(),
          event.end.time_since_epoch().count()};
}

std::optional<TraceEvent> trace_event_in(const TraceNumbers& numbers) {
  const auto [kind, membership, shard, peer, item, number, value, bytes, begin, end] = numbers;
  const auto is_small = [](std::int64_t number) {
    return number >= -1 && number <= std::numeric_limits<std::int32_t>::max();
  };
  const bool is_event = kind >= 0 && kind <= static_cast<std::int64_t>(kLastTraceKind) && is_small(membership) &&
                        is_small(shard) && is_small(peer) && is_small(item) && bytes >= 0 && begin >= 0 &&
                        end >= begin && end < kLatestTime;
  if (!is_event) return std::nullopt;
  return TraceEvent{.kind = static_cast<TraceKind>(kind),
                    .membership = static_cast<std::int32_t>(membership),
                    .shard = static_cast<std::int32_t>(shard),
                    .peer = static_cast<std::int32_t>(peer),
                    .item = static_cast<std::int32_t>(item),
                    .number = number,
                    .value = value,
                    .bytes = bytes,
                    .begin = TimePoint(Duration(begin)),
                    .end = TimePoint(Duration(end))};
}

}  // namespace syncopate

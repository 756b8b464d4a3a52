#include "experiments/cluster/control/trace_records.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace syncopate::experiments {
namespace {

constexpr std::size_t kEventsABatch = 1000;
constexpr std::int64_t kMostDropped = std::int64_t{1} << 50;

constexpr std::size_t kNumbers = std::tuple_size_v<TraceNumbers>;

std::optional<TraceEvent> from_wire(const std::int64_t* at, Duration offset) {
  TraceNumbers numbers;
  std::copy_n(at, kNumbers, numbers.begin());
  std::optional<TraceEvent> event = trace_event_in(numbers);
  if (!event || offset.count() <= -kLatestTime || offset.count() >= kLatestTime) return std::nullopt;
  event->begin += offset;
  event->end += offset;
  return event;
}

}  // namespace

std::vector<control::Trace> to_wire(std::span<const TraceEvent> events, std::int64_t dropped) {
  std::vector<control::Trace> batches(1);
  for (const TraceEvent& event : events) {
    if (static_cast<std::size_t>(batches.back().numbers_size()) == kEventsABatch * kNumbers) batches.emplace_back();
    const TraceNumbers numbers = numbers_of(event);
    batches.back().mutable_numbers()->Add(numbers.begin(), numbers.end());
  }
  batches.back().set_dropped(dropped);
  return batches;
}

TraceInbox::Batch TraceInbox::take(std::size_t process, const control::Trace& trace, Duration offset) {
  Batch batch{.events = {}, .dropped = std::clamp<std::int64_t>(trace.dropped(), 0, kMostDropped)};
  const auto count = static_cast<std::size_t>(trace.numbers_size());
  for (std::size_t at = 0; at < count; at += kNumbers) {
    const bool may_be = left_[process] > 0 && at + kNumbers <= count;
    const std::optional<TraceEvent> event = may_be ? from_wire(trace.numbers().data() + at, offset) : std::nullopt;
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

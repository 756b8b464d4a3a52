#include "experiments/lab/trace/trace_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "experiments/lab/trace/trace_messages.h"
#include "experiments/lab/trace/trace_tracks.h"

namespace syncopate::experiments {
namespace {

// Returns the track of a process that shows what its threads do.
std::string track_of(const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kCollective:
    case TraceKind::kMeeting:
    case TraceKind::kPartSent:
    case TraceKind::kPartTaken:
      return "collective operations";
    case TraceKind::kPushTaken:
    case TraceKind::kShardUpdate:
    case TraceKind::kAnswerSent:
      return fmt::format("shard {}", event.shard);
    default:
      return "compute";
  }
}

// Returns the track of the sender that shows what is under way to this receiver.
std::string track_of(const TraceMessage& message) {
  const TraceEvent& sent = *message.sent;
  if (sent.kind == TraceKind::kPush) return fmt::format("to shard {}", sent.shard);
  return fmt::format("to {} {}", sent.kind == TraceKind::kAnswerSent ? "worker" : "rank", sent.peer);
}

// The tracks of a picture, by process, name and lane.
class Tracks {
 public:
  explicit Tracks(TraceTimeline& timeline) : timeline_(timeline) {}

  TracePlace place(int process, const std::string& name, std::size_t lane) {
    const auto [found, is_new] = numbers_.try_emplace({process, name, lane}, 0);
    if (is_new) found->second = ++counts_[process];
    const TracePlace place{process, found->second};
    if (is_new) timeline_.tracks[place] = lane == 0 ? name : fmt::format("{} ({})", name, lane + 1);
    return place;
  }

 private:
  TraceTimeline& timeline_;
  std::map<std::tuple<int, std::string, std::size_t>, int> numbers_;
  std::map<int, int> counts_;  // by process
};

using Arrows = std::unordered_map<const TraceEvent*, std::vector<std::pair<TraceItem::Kind, std::int64_t>>>;

Arrows arrows_of(const TraceMessages& messages) {
  Arrows arrows;
  std::int64_t number = 0;
  for (const TracePush& push : messages.pushes) {
    ++number;
    arrows[push.sent].emplace_back(TraceItem::Kind::kFlowBegin, number);
    for (const TraceEvent* update : push.updates) arrows[update].emplace_back(TraceItem::Kind::kFlowStep, number);
    arrows[push.answered].emplace_back(TraceItem::Kind::kFlowEnd, number);
  }
  return arrows;
}

class TimelineMaker {
 public:
  TimelineMaker(std::span<const ProcessTrace> traces, TimePoint origin) : origin_(origin), tracks_(timeline_) {
    for (const ProcessTrace& trace : traces) {
      timeline_.processes.push_back(trace.process);
      timeline_.events += static_cast<std::int64_t>(trace.events.size());
      timeline_.dropped += trace.dropped;
      dropped_.push_back(trace.dropped);
      std::vector<const TraceEvent*>& events = by_process_.emplace_back();
      for (const TraceEvent& event : trace.events) events.push_back(&event);
      // What others lie within comes first: the later kinds lie within the earlier ones.
      std::ranges::stable_sort(events, {}, [](const TraceEvent* event) {
        return std::tuple(event->begin, -event->end.time_since_epoch(), event->kind);
      });
    }
  }

  TraceTimeline make() {
    const TraceMessages messages = join_messages(by_process_);
    timeline_.unjoined = messages.unjoined;
    const Arrows arrows = arrows_of(messages);
    for (std::size_t i = 0; i < by_process_.size(); ++i) {
      add_events(i, arrows);
      if (dropped_[i] > 0) add_dropped(i);
    }
    add_messages(messages);
    add_rates(messages);
    std::ranges::stable_sort(timeline_.items, {}, &TraceItem::begin);
    return std::move(timeline_);
  }

 private:
  TraceItem item_at(TraceItem::Kind kind, TracePlace place, TimePoint begin, TimePoint end) const {
    return {.kind = kind, .place = place, .begin = begin - origin_, .length = end - begin};
  }

  void add_events(std::size_t index, const Arrows& arrows) {
    const int process = static_cast<int>(index) + 1;
    std::map<std::string, NestedLanes> lanes;
    for (const TraceEvent* event : by_process_[index]) {
      const std::string track = track_of(*event);
      const TracePlace place = tracks_.place(process, track, lanes[track].take(event->begin, event->end));
      TraceItem item = item_at(TraceItem::Kind::kEvent, place, event->begin, event->end);
      item.event = event;
      timeline_.items.push_back(item);
      if (const auto found = arrows.find(event); found != arrows.end()) {
        for (const auto& [kind, number] : found->second) {
          TraceItem arrow = item_at(kind, place, event->begin, event->begin);
          arrow.number = number;
          timeline_.items.push_back(arrow);
        }
      }
      if (event->kind == TraceKind::kAnswerTaken) {
        add_value(process, TraceItem::Curve::kStaleness, event->begin, static_cast<double>(event->value));
      }
    }
  }

  void add_dropped(std::size_t index) {
    TimePoint last = origin_;
    for (const TraceEvent* event : by_process_[index]) last = std::max(last, event->end);
    TraceItem item = item_at(TraceItem::Kind::kDropped, {static_cast<int>(index) + 1, 1}, last, last);
    item.number = dropped_[index];
    timeline_.items.push_back(item);
  }

  void add_messages(const TraceMessages& messages) {
    std::map<std::pair<int, std::string>, SeparateLanes> lanes;
    for (const TraceMessage& message : messages.messages) {
      const int process = static_cast<int>(message.sender) + 1;
      const std::string track = track_of(message);
      const std::size_t lane = lanes[{process, track}].take(message.begin, message.end);
      TraceItem item =
          item_at(TraceItem::Kind::kMessage, tracks_.place(process, track, lane), message.begin, message.end);
      item.event = message.sent;
      timeline_.items.push_back(item);
    }
  }

  void add_value(int process, TraceItem::Curve curve, TimePoint at, double value) {
    TraceItem item = item_at(TraceItem::Kind::kCounter, {process, 0}, at, at);
    item.curve = curve;
    item.value = value;
    timeline_.items.push_back(item);
  }

  // Each message goes at its mean rate from when it is sent until it is received. One that takes no time has none.
  void add_rates(const TraceMessages& messages) {
    struct Change {
      TimePoint at;
      double rate = 0;
    };
    std::map<std::pair<int, TraceItem::Curve>, std::vector<Change>> changes;
    for (const TraceMessage& message : messages.messages) {
      if (message.end == message.begin) continue;
      const double rate = static_cast<double>(message.sent->bytes) / seconds(message.end - message.begin);
      const std::pair<std::size_t, TraceItem::Curve> ends[] = {{message.sender, TraceItem::Curve::kOut},
                                                               {message.receiver, TraceItem::Curve::kIn}};
      for (const auto& [process, curve] : ends) {
        std::vector<Change>& its = changes[{static_cast<int>(process) + 1, curve}];
        its.push_back({message.begin, rate});
        its.push_back({message.end, -rate});
      }
    }
    for (auto& [key, its] : changes) {
      std::ranges::stable_sort(its, {}, &Change::at);
      double sum = 0;
      int under_way = 0;
      for (std::size_t i = 0; i < its.size(); ++i) {
        sum += its[i].rate;
        under_way += its[i].rate >= 0 ? 1 : -1;
        if (under_way == 0) sum = 0;  // nothing is left of rounding
        const bool is_last_then = i + 1 == its.size() || its[i + 1].at != its[i].at;
        if (is_last_then) add_value(key.first, key.second, its[i].at, std::max(sum, 0.0));
      }
    }
  }

  const TimePoint origin_;
  TraceTimeline timeline_;
  Tracks tracks_;
  std::vector<std::vector<const TraceEvent*>> by_process_;
  std::vector<std::int64_t> dropped_;  // by process
};

}  // namespace

TraceTimeline make_timeline(std::span<const ProcessTrace> traces, TimePoint origin) {
  return TimelineMaker(traces, origin).make();
}

}  // namespace syncopate::experiments

#include "experiments/lab/trace/trace_messages.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace syncopate::experiments {
namespace {

enum class MessageKind { kPart, kPush, kAnswer };

// Which message it is, among all of a run: who sends it, to whom, and its numbers.
using MessageKey = std::tuple<MessageKind, std::int32_t /*membership*/, std::int32_t /*from*/, std::int32_t /*to*/,
                              std::int32_t /*item*/, std::int64_t /*number*/, std::int64_t /*value*/>;
using PushKey = std::tuple<std::int32_t /*membership*/, std::int32_t /*worker*/, std::int32_t /*shard*/,
                           std::int32_t /*chunk*/, std::int64_t /*clock*/>;

struct Ends {
  const TraceEvent* sent = nullptr;
  const TraceEvent* taken = nullptr;
  std::size_t sender = 0, receiver = 0;
};

MessageKey key_of(const TraceEvent& event) {
  const auto key = [&](MessageKind kind, std::int32_t from, std::int32_t to, std::int64_t value) {
    return MessageKey{kind, event.membership, from, to, event.item, event.number, value};
  };
  switch (event.kind) {
    case TraceKind::kPartSent:
      return key(MessageKind::kPart, event.shard, event.peer, event.value);
    case TraceKind::kPartTaken:
      return key(MessageKind::kPart, event.peer, event.shard, event.value);
    case TraceKind::kAnswerSent:
    case TraceKind::kAnswerTaken:
      return key(MessageKind::kAnswer, event.shard, event.peer, 0);
    default:
      return key(MessageKind::kPush, event.peer, event.shard, 0);
  }
}

PushKey push_of(const TraceEvent& event) {
  return {event.membership, event.peer, event.shard, event.item, event.number};
}

bool is_sending(TraceKind kind) {
  return kind == TraceKind::kPartSent || kind == TraceKind::kPush || kind == TraceKind::kAnswerSent;
}
bool is_taking(TraceKind kind) {
  return kind == TraceKind::kPartTaken || kind == TraceKind::kPushTaken || kind == TraceKind::kAnswerTaken;
}

// The first of several that are alike counts: a push goes to both replicas of a shard, and a network may repeat it.
std::map<MessageKey, Ends> ends_of(std::span<const std::vector<const TraceEvent*>> by_process) {
  std::map<MessageKey, Ends> messages;
  const auto is_first = [](const TraceEvent* known, const TraceEvent* event) {
    return known == nullptr || event->begin < known->begin;
  };
  for (std::size_t process = 0; process < by_process.size(); ++process) {
    for (const TraceEvent* event : by_process[process]) {
      if (!is_sending(event->kind) && !is_taking(event->kind)) continue;
      Ends& ends = messages[key_of(*event)];
      if (is_sending(event->kind) && is_first(ends.sent, event)) {
        ends.sent = event;
        ends.sender = process;
      } else if (is_taking(event->kind) && is_first(ends.taken, event)) {
        ends.taken = event;
        ends.receiver = process;
      }
    }
  }
  return messages;
}

// An update is of all pushes of its chunk that have come since the last one.
std::map<PushKey, std::vector<const TraceEvent*>> updates_of(
    std::span<const std::vector<const TraceEvent*>> by_process) {
  std::map<PushKey, std::vector<const TraceEvent*>> updates;
  for (const std::vector<const TraceEvent*>& events : by_process) {
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<const TraceEvent*>> waiting;
    for (const TraceEvent* event : events) {
      if (event->kind != TraceKind::kPushTaken && event->kind != TraceKind::kShardUpdate) continue;
      std::vector<const TraceEvent*>& its = waiting[{event->membership, event->shard, event->item}];
      if (event->kind == TraceKind::kPushTaken) {
        its.push_back(event);
        continue;
      }
      for (const TraceEvent* push : its) updates[push_of(*push)].push_back(event);
      its.clear();
    }
  }
  return updates;
}

}  // namespace

TraceMessages join_messages(std::span<const std::vector<const TraceEvent*>> by_process) {
  TraceMessages joined;
  const std::map<MessageKey, Ends> messages = ends_of(by_process);
  const auto updates = updates_of(by_process);
  for (const auto& [key, ends] : messages) {
    if (ends.sent == nullptr || ends.taken == nullptr) {
      ++joined.unjoined;
      continue;
    }
    const bool is_part = ends.taken->kind == TraceKind::kPartTaken;
    joined.messages.push_back({.sent = ends.sent,
                               .sender = ends.sender,
                               .receiver = ends.receiver,
                               .begin = ends.sent->begin,
                               .end = std::max(ends.sent->begin, is_part ? ends.taken->end : ends.taken->begin)});
    if (ends.sent->kind != TraceKind::kPush) continue;
    const TraceEvent& push = *ends.sent;
    const auto answer = messages.find(
        {MessageKind::kAnswer, push.membership, push.shard, push.peer, push.item, push.number, std::int64_t{0}});
    if (answer == messages.end() || answer->second.taken == nullptr) continue;
    TracePush whole{.sent = &push, .updates = {}, .answered = answer->second.taken};
    if (const auto found = updates.find(push_of(push)); found != updates.end()) {
      // One that came too late for its update is none of the next one.
      std::ranges::copy_if(found->second, std::back_inserter(whole.updates), [&](const TraceEvent* update) {
        return answer->second.sent == nullptr || update->begin <= answer->second.sent->begin;
      });
    }
    joined.pushes.push_back(std::move(whole));
  }
  std::ranges::stable_sort(joined.messages, {}, &TraceMessage::begin);
  return joined;
}

}  // namespace syncopate::experiments

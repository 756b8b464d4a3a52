#include "experiments/lab/trace/trace_json.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace syncopate::experiments {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns microseconds with three decimals.
std::string time_of(Duration time) {
  const std::int64_t ns = time.count();
  const std::int64_t whole = std::abs(ns / 1000), rest = std::abs(ns % 1000);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", whole, rest);
}

struct Words {
  std::string name;
  const char* category = "";
  std::string arguments;  // inside the braces
};

std::string of_bucket(const char* what, const char* with_bucket, const TraceEvent& event) {
  return event.item < 0 ? what : fmt::format("{} {}", with_bucket, event.item);
}

Words of_part(const char* what, const TraceEvent& event) {
  return {fmt::format("{} rank {}", what, event.peer), "part",
          fmt::format(R"("operation":{},"part":{},"bytes":{})", event.number, event.item, event.bytes)};
}

Words of_push(std::string name, const TraceEvent& event, const char* value = nullptr) {
  std::string arguments =
      fmt::format(R"("worker":{},"shard":{},"chunk":{},"clock":{})", event.peer, event.shard, event.item, event.number);
  if (event.kind != TraceKind::kShardUpdate) arguments += fmt::format(R"(,"bytes":{})", event.bytes);
  if (value != nullptr) arguments += fmt::format(R"(,"{}":{})", value, event.value);
  return {std::move(name), "push", std::move(arguments)};
}

Words of_phase(std::string name, const TraceEvent& event) {
  return {std::move(name), "phase", fmt::format(R"("step":{})", event.number)};
}

Words words_of(const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kStep:
      return of_phase(fmt::format("step {}", event.number), event);
    case TraceKind::kData:
      return of_phase("data", event);
    case TraceKind::kForward:
      return of_phase("forward", event);
    case TraceKind::kBackward:
      return of_phase("backward", event);
    case TraceKind::kSynchronise:
      return of_phase("synchronise", event);
    case TraceKind::kStraggle:
      return of_phase("straggle", event);
    case TraceKind::kWait:
      return of_phase(of_bucket("wait", "wait for bucket", event), event);
    case TraceKind::kUpdate:
      return of_phase(of_bucket("update", "update bucket", event), event);
    case TraceKind::kCollective:
      return {of_bucket("collective operation", "bucket", event), "collective",
              fmt::format(R"("step":{},"bytes":{})", event.number, event.bytes)};
    case TraceKind::kMeeting:
      return {fmt::format("meeting with rank {}", event.peer), "collective",
              event.number < 0 ? fmt::format(R"("bytes":{})", event.bytes)
                               : fmt::format(R"("step":{},"bytes":{})", event.number, event.bytes)};
    case TraceKind::kPartSent:
      return of_part("send to", event);
    case TraceKind::kPartTaken:
      return of_part("receive from", event);
    case TraceKind::kPush:
      return of_push(fmt::format("push chunk {} to shard {}", event.item, event.shard), event, "version");
    case TraceKind::kPushTaken:
      return of_push(fmt::format("push of worker {}, chunk {}", event.peer, event.item), event);
    case TraceKind::kShardUpdate:
      return of_push(fmt::format("update chunk {}", event.item), event, "version");
    case TraceKind::kAnswerSent:
      return of_push(fmt::format("answer worker {}, chunk {}", event.peer, event.item), event, "staleness");
    case TraceKind::kAnswerTaken:
      return of_push(fmt::format("answer of shard {}, chunk {}", event.shard, event.item), event, "staleness");
  }
  return {};
}

Words words_of_message(const TraceEvent& sent) {
  Words words = words_of(sent);
  words.category = "message";
  if (sent.kind == TraceKind::kPartSent) words.name = fmt::format("part {} of operation {}", sent.item, sent.number);
  if (sent.kind == TraceKind::kPush) words.name = fmt::format("push of chunk {}", sent.item);
  if (sent.kind == TraceKind::kAnswerSent) words.name = fmt::format("answer, chunk {}", sent.item);
  return words;
}

std::string text_of_slice(const TraceItem& item, const Words& words) {
  return fmt::format(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                     words.name, words.category, item.place.process, item.place.track, time_of(item.begin),
                     time_of(item.length), words.arguments);
}

// An arrow's end belongs to the event that it is in ("bp": "e"), not to the next one.
std::string text_of_flow(const TraceItem& item, char phase) {
  return fmt::format(R"({{"ph":"{}","name":"push","cat":"flow","id":{},"pid":{},"tid":{},"ts":{}{}}})", phase,
                     item.number, item.place.process, item.place.track, time_of(item.begin),
                     phase == 'f' ? R"(,"bp":"e")" : "");
}

std::string text_of_counter(const TraceItem& item) {
  const auto text = [&](const char* name, const char* unit, double value) {
    return fmt::format(R"({{"ph":"C","name":"{}","pid":{},"tid":0,"ts":{},"args":{{"{}":{:.6g}}}}})", name,
                       item.place.process, time_of(item.begin), unit, value);
  };
  switch (item.curve) {
    case TraceItem::Curve::kStaleness:
      return text("staleness", "updates", item.value);
    case TraceItem::Curve::kOut:
      return text("out", "MB/s", item.value / 1e6);
    case TraceItem::Curve::kIn:
      return text("in", "MB/s", item.value / 1e6);
  }
  return {};
}

std::string text_of(const TraceItem& item) {
  switch (item.kind) {
    case TraceItem::Kind::kEvent:
      return text_of_slice(item, words_of(*item.event));
    case TraceItem::Kind::kMessage:
      return text_of_slice(item, words_of_message(*item.event));
    case TraceItem::Kind::kFlowBegin:
      return text_of_flow(item, 's');
    case TraceItem::Kind::kFlowStep:
      return text_of_flow(item, 't');
    case TraceItem::Kind::kFlowEnd:
      return text_of_flow(item, 'f');
    case TraceItem::Kind::kCounter:
      return text_of_counter(item);
    case TraceItem::Kind::kDropped:
      return fmt::format(R"({{"ph":"i","s":"p","name":"{} more events did not fit","pid":{},"tid":{},"ts":{}}})",
                         item.number, item.place.process, item.place.track, time_of(item.begin));
  }
  return {};
}

std::string text_of_names(const TraceTimeline& timeline) {
  std::string text;
  const auto add = [&](const char* what, TracePlace place, const std::string& argument) {
    text += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}},)", what, place.process,
                        place.track, argument);
    text += '\n';
  };
  for (std::size_t i = 0; i < timeline.processes.size(); ++i) {
    const int process = static_cast<int>(i) + 1;
    add("process_name", {process, 0}, fmt::format(R"("name":{})", quoted(timeline.processes[i])));
    add("process_sort_index", {process, 0}, fmt::format(R"("sort_index":{})", process));
  }
  for (const auto& [place, name] : timeline.tracks) {
    add("thread_name", place, fmt::format(R"("name":{})", quoted(name)));
    add("thread_sort_index", place, fmt::format(R"("sort_index":{})", place.track));
  }
  return text;
}

std::string text_of_notes(const TraceTimeline& timeline, const TraceNotes& notes) {
  nlohmann::ordered_json json = {{"run", notes.run},
                                 {"first_step", notes.steps.first},
                                 {"last_step", notes.steps.last},
                                 {"virtual_time", notes.is_virtual},
                                 {"events", timeline.events},
                                 {"dropped", timeline.dropped},
                                 {"unjoined", timeline.unjoined}};
  for (const auto& [process, uncertainty] : notes.clock_uncertainty) {
    json["clock_uncertainty_us"][process] = microseconds(uncertainty);
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void write_trace_json(const TraceTimeline& timeline, const TraceNotes& notes,
                      const std::function<void(std::string_view)>& write) {
  write(fmt::format("{{\"displayTimeUnit\":\"ms\",\n\"otherData\":{},\n\"traceEvents\":[\n",
                    text_of_notes(timeline, notes)));
  write(text_of_names(timeline));
  for (const TraceItem& item : timeline.items) write(text_of(item) + ",\n");
  // The last one ends the list.
  write(R"({"ph":"M","name":"trace_end","pid":0,"tid":0,"args":{}}]})");
  write("\n");
}

}  // namespace syncopate::experiments

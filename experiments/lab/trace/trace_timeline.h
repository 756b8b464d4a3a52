// TraceTimeline: what the processes of a run have recorded, as the tracks, arrows and curves of one picture. Pure.
//
// Each process has a track for each of its threads, whose events lie within each other, and tracks for the messages
// that it sends: as many to each receiver as are under way at a time. A message is what one process has recorded of
// sending and another of receiving it; the arrow of a push leads from where it is sent over the update that it became
// part of to where its answer is taken.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/trace/trace_event.h"

namespace syncopate::experiments {

// What one process has recorded.
struct ProcessTrace {
  std::string process;  // "worker 1", "server 0"
  std::vector<TraceEvent> events;
  std::int64_t dropped = 0;  // more events that did not fit
};

// A place of the picture: a track of a process. Both count from 1.
struct TracePlace {
  int process = 0;
  int track = 0;

  auto operator<=>(const TracePlace&) const = default;
};

struct TraceItem {
  enum class Kind : std::uint8_t {
    kEvent,      // a process's event
    kMessage,    // from where `event` sends it to where it is received
    kFlowBegin,  // of the arrow `number`: the item before it is where it begins; so for the next two
    kFlowStep,
    kFlowEnd,
    kCounter,  // of the process; `curve` has the value from here on
    kDropped,  // behind the process's last event: `number` more did not fit
  };
  enum class Curve : std::uint8_t { kStaleness, kOut, kIn };

  Kind kind = Kind::kEvent;
  Curve curve = Curve::kStaleness;
  TracePlace place;
  Duration begin{};  // since the origin
  Duration length{};
  const TraceEvent* event = nullptr;
  std::int64_t number = 0;
  double value = 0;  // staleness: in updates; out, in: bytes a second of all messages under way, each at its mean rate
};

struct TraceTimeline {
  std::vector<std::string> processes;        // by number, from 1 on
  std::map<TracePlace, std::string> tracks;  // their names
  std::vector<TraceItem> items;              // by their begin; those that others lie within come first
  std::int64_t events = 0;                   // that processes have recorded
  std::int64_t dropped = 0;                  // more that did not fit
  std::int64_t unjoined = 0;                 // of sending, or of receiving, without the other end
};

// Times count from `origin`. The timeline refers to the events of `traces`.
TraceTimeline make_timeline(std::span<const ProcessTrace> traces, TimePoint origin);

}  // namespace syncopate::experiments

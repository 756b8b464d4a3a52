// Writes a timeline in the Trace Event Format (JSON object form), which Perfetto and chrome://tracing open:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace Event Format", Google).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "experiments/lab/trace/trace_timeline.h"

namespace syncopate::experiments {

// What the file says of itself.
struct TraceNotes {
  std::string run;
  TraceSteps steps;
  bool is_virtual = false;                                 // its times are a simulated cluster's
  std::map<std::string, Duration> clock_uncertainty = {};  // as RunOutcome has it
};

// Passes the text on piece by piece. Times are microseconds, to the nanosecond. Events stand in the order of their
// times.
void write_trace_json(const TraceTimeline& timeline, const TraceNotes& notes,
                      const std::function<void(std::string_view)>& write);

}  // namespace syncopate::experiments

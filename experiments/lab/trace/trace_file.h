// TraceLog: collects what the processes of a run have traced, and writes it to a file at the end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/lab/trace/trace_json.h"
#include "experiments/lab/trace/trace_timeline.h"

namespace syncopate::experiments {

// What the record of a run says of its trace.
struct TraceFacts {
  std::string file;  // its name in the run's folder
  TraceSteps steps;
  std::int64_t events = 0;
  std::int64_t dropped = 0;  // more that did not fit
};

class TraceLog {
 public:
  void add(const std::string& process, std::span<const TraceEvent> events, std::int64_t dropped);

  // Writes the file `name` of this folder, which has times from `origin` on: it is there whole, or not at all. Fails
  // with resource exhausted, the path and the system's reason.
  Result<TraceFacts> write(const std::string& folder, const std::string& name, const TraceNotes& notes,
                           TimePoint origin) const;

 private:
  std::vector<ProcessTrace> traces_;  // in the order of their names
};

}  // namespace syncopate::experiments

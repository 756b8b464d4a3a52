// FaultRecord: the outcome of one fault of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"

namespace syncopate::experiments {

// The time from a fault until training went on. Only a step that was begun after the fault counts: one that was running
// already may have had all it needed.
struct RecoveryTimes {
  // From the fault to the end of the first step that some worker has begun after it; none: no worker has ended one.
  std::optional<Duration> first;
  // From the fault to the end of the last worker's first such step, over all workers that have ended one.
  std::optional<Duration> all;
};

struct FaultRecord {
  std::string fault;                 // as it was asked for: "kill:worker1@step200"
  std::string outcome;               // "killed worker 1 (pid 4711)", "worker 1 is not there", "its time did not come"
  std::optional<TimePoint> at = {};  // none: nothing was done
  std::optional<std::int64_t> step = {};  // the step at which it was due
  double training_seconds = 0;            // time of `at` since training began
  RecoveryTimes recovery = {};
  int repeat = 0;
};

// Returns "killed worker 1 (pid 4711); training went on after 12 ms, everywhere after 31 ms".
std::string to_text(const FaultRecord& record);

}  // namespace syncopate::experiments

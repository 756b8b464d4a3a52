// FaultRecord: what became of one fault of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"

namespace syncopate::experiments {

// The time after a fault until training went on. A step counts that was begun after the fault: one that was under way
// may have had all it needed before.
struct RecoveryTimes {
  // From the fault to the end of the first step that some worker has begun after it; none: nobody has ended one.
  std::optional<Duration> first;
  // To that of the last of the workers that have ended such a step: all that are there have gone on.
  std::optional<Duration> all;
};

struct FaultRecord {
  std::string fault;                 // as it was asked for: "kill:worker1@step200"
  std::string outcome;               // "killed worker 1 (pid 4711)", "worker 1 is not there", "its time did not come"
  std::optional<TimePoint> at = {};  // none: nothing was done
  std::optional<std::int64_t> step = {};  // that it was due at
  double training_seconds = 0;            // since training began, of `at`
  RecoveryTimes recovery = {};
  int repeat = 0;
};

// "killed worker 1 (pid 4711); training went on after 12 ms, everywhere after 31 ms"
std::string to_text(const FaultRecord& record);

}  // namespace syncopate::experiments

// FaultRecord: what became of one fault of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/faults/recovery_times.h"

namespace syncopate::experiments {

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

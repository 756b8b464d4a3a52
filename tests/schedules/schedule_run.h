// ScheduleRun: what became of a drawn schedule when it was carried out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/step_record.h"
#include "experiments/cluster/coordinator/coordinator.h"
#include "tests/schedules/drawn_schedule.h"

namespace syncopate::experiments {

// What happened to a worker, in order: the record of a step arrived, the worker was lost, or it took part again.
struct WorkerEvent {
  enum class Kind { kStep, kLost, kJoined };
  Kind kind = Kind::kStep;
  StepRecord step = {};  // of a step
  TimePoint at{};        // when the coordinator knew
};

struct ScheduleRun {
  Status status;                                    // not ok: the run ended in neither success nor a verdict
  RunOutcome outcome;                               // if it is ok
  std::map<int, std::vector<WorkerEvent>> workers;  // by rank
  std::vector<float> weights;                       // the final ones; empty if none were handed in
  std::int64_t final_weights = 0;                   // how often they were
  std::int64_t evaluations = 0;
  Duration length{};  // in virtual time, to within a tick of the coordinator
};

// Carries the schedule out in virtual time, in this process. Processes log to files in `directory`, which is emptied
// first.
ScheduleRun carry_out(const DrawnSchedule& schedule, const std::string& directory);

// Returns a text that is the same for two runs that went alike: every record with its times, every report and the
// weights, bit by bit.
std::string trace_of(const ScheduleRun& run);

}  // namespace syncopate::experiments

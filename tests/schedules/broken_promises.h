// What a run promises, whatever happens to it: held against what became of a drawn schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/schedules/drawn_schedule.h"
#include "tests/schedules/schedule_run.h"

namespace syncopate::experiments {

// Returns a line for each promise that the run has broken. It may have ended in success or in a verdict on a lost
// process or on a deadline, in time; where it succeeded, final weights are there and finite, and steps were made as
// often as the job asks for, as far as no recovery may repeat them or leave them out.
std::vector<std::string> broken_promises(const DrawnSchedule& schedule, const ScheduleRun& run);

// Returns how often somebody was lost, came back or connected anew, except the evaluator.
std::int64_t changes_of(const ScheduleRun& run);
// Returns whether the run succeeded without such a change.
bool stayed_together(const ScheduleRun& run);

// Returns whether the run's weights do not depend on who is fast and who is slow.
bool is_independent_of_time(const ResolvedRun& run);

}  // namespace syncopate::experiments

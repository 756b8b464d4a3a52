// What a run's options come to when another program has started its processes: so many tasks are so many workers and
// servers. Pure.
#pragma once

#include "common/launch/task_place.h"
#include "common/status.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {

// --started-by, which is no option of the run itself.
OptionSpec started_by_option();

// Adds to `given` the number of workers, and of servers where the environment gives roles, that fit the tasks. Fails
// with invalid argument where the options ask for others, or for what the starter has already decided.
Status settle_tasks(const TaskPlace& place, GivenOptions& given);

}  // namespace syncopate::experiments

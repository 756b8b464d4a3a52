// Where the tasks of a run wait for its coordinator. On one host each listens at a local socket whose name follows from
// what the launcher has started and from the user; the kernel tells both ends which user is at the other.
#pragma once

#include <string>

#include "common/clock.h"
#include "experiments/cluster/tasks/task_connection.h"
#include "experiments/config/started_by/task_place.h"

namespace syncopate::experiments {

// Returns the name of the local socket of task `rank` of what has started `place`. Where the environment does not name
// that, it is what the parent of this process has started.
std::string local_address_of(const TaskPlace& place, int rank);

// Connects to the task that listens at `address`, and waits until it does. Fails with deadline exceeded if none comes
// to listen there, or another user's process does.
Result<TaskConnection> connect_to_task(const std::string& address, TimePoint deadline);

}  // namespace syncopate::experiments

// Where a task of a run is reached, in one of two ways.
//
//   on one host      a local socket, whose name follows from what the launcher has started and from the user, and from
//                    the tasks' secret if a file of it is named, so that nobody else can take the name before; the
//                    kernel tells both ends which user is at the other: "syncopate-task-1f..."
//   on several       a port that the task's kernel has chosen. Both ends prove that they have the secret of the job's
//                    tasks, and what they say is encrypted: "tcp://10.0.0.7:4711/3/8/slurm-17.0", which
//                    names the task's rank, the number of tasks and their job
#pragma once

#include <string>

#include "common/clock.h"
#include "common/launch/task_place.h"
#include "common/os/socket_address.h"
#include "experiments/cluster/tasks/task_connection.h"

namespace syncopate::experiments {

// Returns the name of the local socket of task `rank` of what has started `place`. Where the environment does not name
// that, it is what the parent of this process has started. Fails as read_secret_file() does if the place names one.
Result<std::string> local_address_of(const TaskPlace& place, int rank);
// Adds to a failure at such a name what a person can do about it.
Status with_way_out(const Status& failure, const TaskPlace& place);
// Returns the address of the task at `place`, which listens at `listener`.
std::string network_address_of(const TaskPlace& place, const SocketAddress& listener);

struct NetworkTask {
  SocketAddress listener;
  int rank = 0;
  int size = 1;  // of the job, in tasks
  std::string job;
};
// Fails with invalid argument for what network_address_of() does not return.
Result<NetworkTask> parse_network_address(const std::string& address);

// Connects to the task that listens at `address`, and waits until it does. `secret_file` is for tasks on several hosts.
// Fails with deadline exceeded if none comes to listen there, or another user's process does, with peer lost if the
// other end does not have the secret, and as task_identity() does.
Result<TaskConnection> connect_to_task(const std::string& address, const std::string& secret_file, TimePoint deadline);

}  // namespace syncopate::experiments

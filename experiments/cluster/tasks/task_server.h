// TaskServer: the rest of a task that is not the coordinator's own: it waits for the coordinator, reports its host, and
// runs the process that it is told to, one after another if need be, until the run is over.
//
// It ends the process, and itself, when the coordinator's connection ends without a release (the coordinator is dead),
// and kills the process when the shell that asked for it is gone (task_shell.h). SIGTERM, SIGINT and SIGHUP, which a
// launcher sends to all tasks, are left to the coordinator, which has them too and ends the run in order; a task that
// has waited in vain for that ends by itself. So it does when its launcher is gone.
//
// The program has a single thread.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/launch/task_place.h"

namespace syncopate::experiments {

struct TaskServerOptions {
  std::string program;                           // this program
  TaskPlace place;                               // of this task, whose rank is not 0
  Duration patience = std::chrono::seconds(30);  // how long the coordinator may take to come
  Duration grace{};                              // how long a run may take for a last checkpoint before it ends
};

// Returns the exit code of the task.
int serve_task(const TaskServerOptions& options);

}  // namespace syncopate::experiments

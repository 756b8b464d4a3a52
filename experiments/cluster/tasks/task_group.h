// TaskGroup: the tasks of a run as the one with rank 0 sees them, which holds the coordinator. All are held until it is
// destroyed, and then end.
#pragma once

#include <string>
#include <vector>

#include "common/clock.h"
#include "common/launch/task_place.h"
#include "experiments/cluster/host/host_report.h"
#include "experiments/cluster/tasks/task_connection.h"

namespace syncopate::experiments {

struct Task {
  std::string address;  // where it takes commands; empty: it is this process itself
  HostReport report;    // of its host, as it sees it: a launcher may show each task other GPUs
};

class TaskGroup {
 public:
  struct Options {
    bool with_gpus = false;  // whether tasks look for GPUs
    Duration timeout = std::chrono::seconds(30);
  };

  // Waits for all other tasks of `place`, whose rank is 0. Fails with deadline exceeded, naming the first that has not
  // come, with invalid argument if one is of another build or cannot be told from another by its host's name, and as
  // receive_tasks() does.
  static Result<TaskGroup> gather(const TaskPlace& place, const Options& options);

  TaskGroup() = default;
  TaskGroup(TaskGroup&&) = default;
  TaskGroup& operator=(TaskGroup&&) = default;
  ~TaskGroup();

  // By rank.
  const std::vector<Task>& tasks() const { return tasks_; }
  // Where tasks on other hosts reach this one; empty if there are none.
  const std::string& address() const { return address_; }

 private:
  // Connects to the others, whose addresses it adds.
  Status meet(const TaskPlace& place, Duration timeout);
  TaskConnection& hold_of(int rank) { return holds_[static_cast<std::size_t>(rank) - 1]; }

  std::string address_;
  std::vector<Task> tasks_;
  std::vector<TaskConnection> holds_;
};

}  // namespace syncopate::experiments

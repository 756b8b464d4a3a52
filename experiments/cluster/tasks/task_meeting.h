// How tasks on several hosts find each other. The first, of rank 0, listens on its host, whose name all know
// (TaskPlace::first_host), at one of a few ports that follow from the job's name, since no launcher passes on what a
// kernel has chosen. Each other task connects to it there, listens at a port of its own kernel's choice, and says
// where.
//
//   task 3                                     task 0
//   connects, shakes hands                 ─►  receive_tasks()
//   kHere: "tcp://10.0.0.7:4711/3/8/..."   ─►  knows where shells reach it
//   this connection then is the coordinator's (TaskMessage::kHold)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/launch/task_place.h"
#include "experiments/cluster/tasks/task_connection.h"
#include "experiments/cluster/tasks/task_entrance.h"

namespace syncopate::experiments {

// Returns the ports at which the first task of a job may listen, in the order in which it tries them. Pure.
std::array<std::uint16_t, 8> meeting_ports(const std::string& job);

struct MetTask {
  TaskConnection connection;
  std::string address;  // where its shells reach it
};

// For the first task: waits for all others; returns them by rank, from 1. Fails with deadline exceeded, naming the
// first that has not come, with resource exhausted if none of the ports is free, and as task_identity() does.
Result<std::vector<MetTask>> receive_tasks(const TaskPlace& place, Duration timeout);

struct MeetingWithFirst {
  TaskConnection first;
  std::unique_ptr<TaskEntrance> entrance;  // of this task
};

// For the others: waits until the first task is there, and says to it where this one listens. Fails with deadline
// exceeded, and as task_identity() does.
Result<MeetingWithFirst> meet_first_task(const TaskPlace& place, Duration timeout);

}  // namespace syncopate::experiments

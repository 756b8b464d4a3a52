// TaskCommand: what a task is to become: a process of the run. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/transport/secret_text.h"

namespace syncopate::experiments {

struct TaskCommand {
  std::vector<std::pair<std::string, std::string>> environment = {};  // in addition to the task's own
  bool on_gpu = false;                                                // the program for GPUs, beside the task's own
  std::vector<std::string> arguments;                                 // from --role= on
  SecretText input = {};                                              // its standard input, which then ends
};

// Returns the bytes that parse_task_command() reads. They contain the input: the caller wipes them.
std::string to_bytes(const TaskCommand& command);
// Fails with data loss for anything else, and for arguments that are not those of a process of a run.
Result<TaskCommand> parse_task_command(std::string_view bytes);

}  // namespace syncopate::experiments

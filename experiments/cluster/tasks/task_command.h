// What tasks are told: for whom they are held, and what to become, a process of the run. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/transport/secret_text.h"

namespace syncopate::experiments {

// The bytes of TaskMessage::kHold: what the task's report of its host is to have.
struct HoldOrder {
  bool with_gpus = false;
  std::string towards = {};  // where tasks on other hosts reach the coordinator's; empty if there are none

  std::string to_text() const { return (with_gpus ? "gpus " : "cpu ") + towards; }
  static HoldOrder parse(std::string_view text) {
    return {.with_gpus = text.starts_with("gpus "), .towards = std::string(text.substr(text.find(' ') + 1))};
  }
};

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

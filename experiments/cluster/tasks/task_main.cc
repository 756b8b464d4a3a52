#include "experiments/cluster/tasks/task_main.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "experiments/cluster/tasks/task_server.h"
#include "experiments/config/started_by/started_task.h"

namespace syncopate::experiments {

bool leaves_the_word_to_another() {
  const FoundPlace place = started_task(own_variables(), StartedBy::kAuto);
  if (!place.ok() || !*place || (*place)->by == StartedBy::kTfConfig) return false;
  return ((*place)->one_host ? (*place)->rank : (*place)->local_rank) > 0;
}

void leave_the_word_to_the_first() { std::this_thread::sleep_for(std::chrono::seconds(1)); }

ExitCode task_main(const TaskPlace& place, Duration patience, Duration grace) {
  if (place.evaluates) {
    fmt::print(stderr, "run_experiment: evaluation takes place beside the chief; there is nothing to do here\n");
    return ExitCode::kSuccess;
  }
  return static_cast<ExitCode>(serve_task({.program = std::filesystem::read_symlink("/proc/self/exe").string(),
                                           .place = place,
                                           .patience = patience,
                                           .grace = grace}));
}

}  // namespace syncopate::experiments

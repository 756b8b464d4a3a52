#include "experiments/cluster/tasks/task_main.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "experiments/cluster/tasks/task_server.h"

namespace syncopate::experiments {

Variables own_variables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = std::min(text.find('='), text.size());
    variables.emplace(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return variables;
}

bool leaves_the_word_to_another() {
  const Result<std::optional<TaskPlace>> place = task_place(own_variables(), StartedBy::kAuto);
  if (!place.ok() || !*place || (*place)->by == StartedBy::kTfConfig) return false;
  return ((*place)->one_host ? (*place)->rank : (*place)->local_rank) > 0;
}

void leave_the_word_to_the_first() {
  constexpr int kMilliseconds = 1000;
  poll(nullptr, 0, kMilliseconds);
}

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

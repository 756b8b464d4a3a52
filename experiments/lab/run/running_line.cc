#include "experiments/lab/run/running_line.h"

#include <fmt/format.h>

#include "common/text/printable_text.h"
#include "experiments/config/commands.h"
#include "experiments/config/given_values.h"
#include "experiments/lab/report/text_table.h"
#include "experiments/lab/run/running_runs.h"

namespace syncopate::experiments {
namespace {

constexpr double kUsualPatience = 60, kMostPatience = 86400;

std::string list_text(const std::vector<RunningRun>& runs) {
  if (runs.empty()) return "no run of yours is under way on this host\n";
  constexpr std::size_t kLongestName = 36;
  std::vector<std::vector<std::string>> rows{{"run", "command", "pid", "since"}};
  for (const RunningRun& run : runs) {
    rows.push_back({printable(run.name(), kLongestName), printable(run.command, 8), fmt::format("{}", run.pid),
                    printable(run.started, 32)});
  }
  std::string text = text_table(rows) + "\n";
  for (const RunningRun& run : runs) {
    text += fmt::format("{}: {}\n  {}\n", run.pid, printable(run.job), printable(run.results));
  }
  return text;
}

}  // namespace

Result<std::string> running_answer(const std::vector<std::string>& words) {
  const bool stops = words.front() == "stop";
  SYNCOPATE_ASSIGN_OR_RETURN(const auto read, command_words(words));
  const auto& [names, given] = read;
  if (stops && names.size() != 1) {
    return Status::invalid_argument("stop: needs the name, the folder or the process id of one run; ps lists them");
  }
  double patience = kUsualPatience;
  if (const auto timeout = given.find("timeout"); timeout != given.end()) {
    SYNCOPATE_ASSIGN_OR_RETURN(patience, time_in("timeout", timeout->second, 0.1, kMostPatience));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const RunningRuns runs, RunningRuns::of_user());
  if (!stops) return list_text(runs.list());
  SYNCOPATE_ASSIGN_OR_RETURN(const RunningRun stopped, runs.stop(names.front(), from_seconds(patience)));
  return fmt::format("{} has ended; what was recorded is in {}\n", printable(stopped.name()),
                     printable(stopped.results));
}

}  // namespace syncopate::experiments

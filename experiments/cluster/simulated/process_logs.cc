#include "experiments/cluster/simulated/process_logs.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "common/text/printable_text.h"
#include "experiments/cluster/launcher/launcher.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kLongestLine = 1 << 14;

}  // namespace

ProcessLogs::ProcessLogs(const simulation::World& world, const JobPlan& plan, std::string directory)
    : world_(world),
      plan_(plan),
      directory_(std::move(directory)),
      begin_(world.now()),
      redirected_([this](LogLevel level, const std::string& message) { return write(level, message); }) {}

std::string ProcessLogs::file_of(std::size_t process) const {
  return fmt::format("{}/{}", directory_, log_name_of(plan_.processes[process]));
}

bool ProcessLogs::write(LogLevel level, const std::string& message) {
  const std::optional<simulation::World::GroupId> group = world_.running_group();
  const auto its = group ? processes_.find(*group) : processes_.end();
  if (its == processes_.end()) return false;
  std::ofstream(file_of(its->second), std::ios::app)
      << fmt::format("{:.6f} s {} [{}] {}\n", seconds(world_.now() - begin_), plan_.processes[its->second].name(),
                     name_of(level), printable(message, kLongestLine));
  return true;
}

}  // namespace syncopate::experiments

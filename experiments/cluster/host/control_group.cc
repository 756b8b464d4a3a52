#include "experiments/cluster/host/control_group.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

// Reads a file that the kernel generates; empty if there is none.
std::string kernel_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct OwnGroup {
  fs::path root;  // where groups are mounted
  fs::path name;  // below it
  bool is_v2 = true;
};

// Returns the group of a controller: of v1 if it is mounted so, otherwise of v2.
std::optional<OwnGroup> own_group(const std::string& controller) {
  std::optional<OwnGroup> second;
  std::istringstream groups(kernel_text("/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const std::size_t names = line.find(':'), place = line.find(':', names + 1);
    if (names == std::string::npos || place == std::string::npos) continue;
    const std::string controllers = line.substr(names + 1, place - names - 1);
    const fs::path name = fs::path(line.substr(place + 1)).relative_path();
    if (controllers.empty()) second = {"/sys/fs/cgroup", name, true};
    if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    return OwnGroup{"/sys/fs/cgroup/" + controller, name, false};
  }
  return second;
}

struct LimitedGroup {
  fs::path folder;
  double cores = 0;
};

// Returns the group with the least quota. Every group above limits as well.
std::optional<LimitedGroup> tightest_group() {
  const std::optional<OwnGroup> own = own_group("cpu");
  if (!own) return std::nullopt;
  std::optional<LimitedGroup> least;
  for (fs::path name = own->name;; name = name.parent_path()) {
    const fs::path folder = own->root / name;
    const std::string text =
        own->is_v2 ? kernel_text(folder / "cpu.max")
                   : kernel_text(folder / "cpu.cfs_quota_us") + " " + kernel_text(folder / "cpu.cfs_period_us");
    const std::optional<double> cores = quota_cores(text);
    if (cores && (!least || *cores < least->cores)) least = {folder, *cores};
    if (name.empty() || name == name.parent_path()) return least;
  }
}

// Returns the number behind `key` at the beginning of a line.
std::optional<double> number_behind(std::string_view key, std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string name, value; lines >> name >> value;) {
    if (name == key) return parse_number<double>(value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> core_quota() {
  const std::optional<LimitedGroup> group = tightest_group();
  return group ? std::optional(group->cores) : std::nullopt;
}

std::optional<Throttling> throttling() {
  const std::optional<LimitedGroup> group = tightest_group();
  return group ? throttling_in(kernel_text(group->folder / "cpu.stat")) : std::nullopt;
}

std::optional<std::int64_t> oom_kills() {
  const std::optional<OwnGroup> own = own_group("memory");
  if (!own) return std::nullopt;
  return oom_kills_in(kernel_text(own->root / own->name / (own->is_v2 ? "memory.events" : "memory.oom_control")));
}

bool OomKills::explain_one() {
  const std::optional<std::int64_t> now = oom_kills();
  if (!now || !counted_ || *now <= *counted_) return false;
  ++*counted_;
  return true;
}

std::optional<double> quota_cores(std::string_view quota_and_period) {
  std::istringstream words{std::string(quota_and_period)};
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<Throttling> throttling_in(std::string_view cpu_stat) {
  const std::optional<double> periods = number_behind("nr_periods", cpu_stat);
  const std::optional<double> throttled = number_behind("nr_throttled", cpu_stat);
  if (!periods || !throttled) return std::nullopt;
  return Throttling{*periods, *throttled};
}

std::optional<std::int64_t> oom_kills_in(std::string_view memory_events) {
  const std::optional<double> kills = number_behind("oom_kill", memory_events);
  return kills ? std::optional(static_cast<std::int64_t>(*kills)) : std::nullopt;
}

}  // namespace syncopate::experiments

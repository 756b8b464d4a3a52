#include "experiments/config/started_by/slurm_allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "experiments/config/started_by/launcher_places.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostNodes = 1000;
constexpr int kMostTasks = 1 << 16;

Status wrong_list(std::string_view text) {
  return Status::invalid_argument(
      fmt::format("SLURM_JOB_NODELIST={}: must be names of hosts, as in node[1-3],login", printable(text)));
}

// Takes the text up to the next comma that is not within brackets.
std::string_view take_part(std::string_view& text) {
  bool within = false;
  std::size_t end = 0;
  for (; end < text.size() && (within || text[end] != ','); ++end) {
    if (text[end] == '[') within = true;
    if (text[end] == ']') within = false;
  }
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// Adds "07" and "08" for "07-08", each between `before` and `behind`.
bool add_range(std::string_view range, std::string_view before, std::string_view behind,
               std::vector<std::string>& names) {
  const std::size_t dash = std::min(range.find('-'), range.size());
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == range.size() ? low : range.substr(dash + 1);
  const std::optional<int> first = parse_number<int>(low), last = parse_number<int>(high);
  if (!first || !last || *first < 0 || *last < *first) return false;
  for (int number = *first; number <= *last && names.size() <= kMostNodes; ++number) {
    names.push_back(fmt::format("{}{:0{}}{}", before, number, low.size(), behind));
  }
  return true;
}

// Reads "2(x3),1" as 2, 2, 2 and 1.
std::optional<std::vector<int>> parse_tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t times = std::min(part.find("(x"), part.size());
    std::optional<int> repeats = 1;
    if (times < part.size()) {
      if (part.back() != ')') return std::nullopt;
      repeats = parse_number<int>(part.substr(times + 2, part.size() - times - 3));
    }
    const std::optional<int> each = parse_number<int>(part.substr(0, times));
    if (!each || !repeats || *each < 1 || *each > kMostTasks || *repeats < 1 ||
        *repeats > static_cast<int>(kMostNodes)) {
      return std::nullopt;
    }
    tasks.insert(tasks.end(), static_cast<std::size_t>(*repeats), *each);
  }
  return tasks;
}

// Takes a slot of the hosts in turn for each of `processes`, as long as a host keeps one.
void take_slots(std::vector<HostSlots>& hosts, int processes) {
  for (int i = 0; i < processes; ++i) {
    HostSlots& host = hosts[static_cast<std::size_t>(i) % hosts.size()];
    host.slots = std::max(host.slots - 1, 1);
  }
}

}  // namespace

Result<std::vector<std::string>> parse_node_list(std::string_view text) {
  const std::string_view whole = text;
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    const std::size_t begin = part.find('['), end = part.find(']');
    if (begin == std::string_view::npos && !part.empty()) {
      names.emplace_back(part);
      continue;
    }
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 2) return wrong_list(whole);
    std::string_view ranges = part.substr(begin + 1, end - begin - 1);
    while (!ranges.empty()) {
      const std::string_view range = ranges.substr(0, ranges.find(','));
      ranges.remove_prefix(std::min(range.size() + 1, ranges.size()));
      if (!add_range(range, part.substr(0, begin), part.substr(end + 1), names)) return wrong_list(whole);
    }
    if (names.size() > kMostNodes) return wrong_list(whole);
  }
  if (names.empty()) return wrong_list(whole);
  return names;
}

Result<std::vector<HostSlots>> slurm_hosts(const Variables& environment) {
  const std::string list = text_in(environment, "SLURM_JOB_NODELIST");
  if (list.empty() || text_in(environment, "SLURM_JOB_ID").empty()) {
    return Status::invalid_argument(
        "--launcher=slurm: this is not in an allocation of Slurm's (SLURM_JOB_ID and SLURM_JOB_NODELIST are not set); "
        "start it in a script of sbatch, or in a shell of salloc");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> names, parse_node_list(list));
  // Without -n or --ntasks-per-node an allocation has one task a node, and does not say so.
  const std::string per_node = text_in(environment, "SLURM_TASKS_PER_NODE");
  std::optional<std::vector<int>> tasks = parse_tasks_per_node(per_node);
  if (per_node.empty()) tasks.emplace(names.size(), 1);
  if (!tasks || tasks->size() != names.size()) {
    return Status::invalid_argument(
        fmt::format("SLURM_TASKS_PER_NODE={}: must say of each of {} how many tasks it has, as in 2(x3),1",
                    printable(per_node), printable(list)));
  }
  // The shell of salloc may run elsewhere.
  const std::string own = text_in(environment, "SLURMD_NODENAME");
  std::vector<HostSlots> hosts;
  for (std::size_t node = 0; node < names.size(); ++node) {
    hosts.push_back({.name = names[node] == own ? "localhost" : names[node], .slots = (*tasks)[node]});
  }
  return hosts;
}

Status settle_slurm(const Variables& environment, GivenOptions& given) {
  const auto launcher = given.find("launcher");
  if (launcher == given.end() || launcher->second != "slurm") return {};
  for (const OptionSpec& option : option_table()) {
    if (!given.contains(option.name) || (!option.names_hosts && option.name != "cluster")) continue;
    return Status::invalid_argument(fmt::format(
        "--{}={}: --launcher=slurm takes the hosts of the allocation, and reaches them by srun; leave it out",
        option.name, given.at(option.name)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<HostSlots> hosts, slurm_hosts(environment));
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest request, apply_options(given));
  const int servers = server_processes_of(request);
  const int tasks = total_slots(hosts);
  if (tasks - servers < 1) {
    return Status::invalid_argument(fmt::format(
        "--servers={}: the allocation has {} tasks, and none is left for a worker; ask for more with sbatch "
        "-n, or use fewer servers",
        request.servers, tasks));
  }
  take_slots(hosts, servers);
  given["hosts"] = to_text(hosts);
  given.emplace("workers", std::to_string(std::min(tasks - servers, total_slots(hosts))));
  return {};
}

std::string slurm_shell() {
  // Beside what else runs in the allocation; with processors and memory as the job has them.
  return "srun --overlap --quiet --nodes=1 --ntasks=1 --mpi=none --cpu-bind=none --kill-on-bad-exit=0 --nodelist";
}

}  // namespace syncopate::experiments

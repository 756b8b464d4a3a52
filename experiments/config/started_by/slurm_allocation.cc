#include "experiments/config/started_by/slurm_allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/launch/launcher_places.h"
#include "common/launch/node_list.h"
#include "common/text/number.h"
#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

constexpr int kMostTasks = 1 << 16;

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
        servers_text(request), tasks));
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

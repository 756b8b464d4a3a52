#include "experiments/cluster/plan/task_roles.h"

#include <algorithm>
#include <cstddef>

namespace syncopate::experiments {
namespace {

std::vector<std::string> names_of_hosts(const std::vector<PlanHost>& tasks) {
  std::vector<std::string> names;
  for (const PlanHost& task : tasks) {
    if (std::ranges::find(names, task.name) == names.end()) names.push_back(task.name);
  }
  return names;
}

// Returns the last task of this host that is not taken; tasks.size() if all are.
std::size_t last_free(const std::vector<PlanHost>& tasks, const std::vector<bool>& taken, const std::string& host) {
  for (std::size_t task = tasks.size(); task-- > 0;) {
    if (!taken[task] && tasks[task].name == host) return task;
  }
  return tasks.size();
}

// Takes a task for the server that `turn` comes to, on the next host that has one left.
std::size_t take_for_server(const std::vector<PlanHost>& tasks, const std::vector<std::string>& hosts, std::size_t turn,
                            std::vector<bool>& taken) {
  std::size_t task = tasks.size();
  for (std::size_t i = 0; i < hosts.size() && task == tasks.size(); ++i) {
    task = last_free(tasks, taken, hosts[(turn + i) % hosts.size()]);
  }
  taken[task] = true;
  return task;
}

}  // namespace

Cluster cluster_of_tasks(const ResolvedRun& config, const std::string& coordinator, const std::vector<PlanHost>& tasks,
                         const std::optional<FixedRoles>& roles) {
  Cluster cluster{.coordinator = coordinator, .hosts = {}};
  const auto servers = static_cast<std::size_t>(separate_servers_of(config));
  const std::vector<std::string> hosts = names_of_hosts(tasks);
  std::vector<bool> taken(tasks.size());
  for (std::size_t rank = 0; rank < servers; ++rank) {
    std::size_t task = static_cast<std::size_t>(config.workers) + rank;
    if (roles) {
      taken[task] = true;
    } else {
      task = take_for_server(tasks, hosts, rank, taken);
    }
    cluster.server_hosts.push_back(tasks[task]);
  }
  for (std::size_t rank = 0; rank < servers && config.replicas > 0; ++rank) {
    cluster.server_hosts.push_back(tasks[take_for_server(tasks, hosts, rank + 1, taken)]);
  }
  for (const std::string& host : hosts) {
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      if (!taken[task] && tasks[task].name == host) cluster.hosts.push_back(tasks[task]);
    }
  }
  return cluster;
}

std::vector<HostSlots> hosts_of(const Cluster& cluster) {
  std::vector<HostSlots> hosts;
  const auto slots_of = [&hosts](const PlanHost& task) -> int& {
    const std::string name = task.remote ? task.name : "localhost";
    auto host = std::ranges::find(hosts, name, &HostSlots::name);
    if (host == hosts.end()) host = hosts.insert(hosts.end(), {.name = name, .slots = 0});
    return host->slots;
  };
  for (const PlanHost& task : cluster.hosts) ++slots_of(task);
  for (const PlanHost& task : cluster.server_hosts) slots_of(task);
  return hosts;
}

}  // namespace syncopate::experiments

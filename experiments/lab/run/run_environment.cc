#include "experiments/lab/run/run_environment.h"

#include <algorithm>
#include <string>
#include <vector>

namespace syncopate::experiments {
namespace {

// Returns the GPUs of `machine` that the plan's workers on `host` compute on.
std::vector<std::string> gpus_used(const JobPlan& plan, const std::string& host, const Machine& machine) {
  std::vector<std::string> names;
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    const bool used = std::ranges::any_of(plan.processes, [&](const ProcessSpec& process) {
      return process.host == host && process.gpu == static_cast<int>(gpu);
    });
    if (used) names.push_back(machine.gpus[gpu].name);
  }
  return names;
}

// In the order of their reports. Each task is a host of the cluster, so that one's name may come several times.
std::vector<std::string> names_of_hosts(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const auto* hosts : {&cluster.hosts, &cluster.server_hosts}) {
    for (const PlanHost& host : *hosts) {
      if (std::ranges::find(names, host.name) == names.end()) names.push_back(host.name);
    }
  }
  return names;
}

}  // namespace

Environment environment_of(const JobPlan& plan, const Cluster& cluster, const Survey& survey) {
  Environment environment = this_environment();
  if (survey.hosts.empty()) environment.gpus = gpus_used(plan, own_host(), survey.here);
  const std::vector<std::string> names = names_of_hosts(cluster);
  // A comparison may have other rows on more hosts.
  for (std::size_t i = 0; i < std::min(survey.hosts.size(), names.size()); ++i) {
    const std::string& name = names[i];
    const auto count = [&](Role role) {
      return static_cast<int>(std::ranges::count_if(
          plan.processes, [&](const ProcessSpec& process) { return process.host == name && process.role == role; }));
    };
    const Environment& there = survey.hosts[i].environment;
    environment.hosts.push_back({.name = name,
                                 .workers = count(Role::kWorker),
                                 .servers = count(Role::kServer),
                                 .own_name = there.host,
                                 .kernel = there.kernel,
                                 .cpu_model = there.cpu_model,
                                 .cores = there.cores,
                                 .memory_gib = there.memory_gib,
                                 .vector_set = there.vector_set,
                                 .gpus = gpus_used(plan, name, survey.hosts[i].machine)});
    const std::vector<std::string>& gpus = environment.hosts.back().gpus;
    environment.gpus.insert(environment.gpus.end(), gpus.begin(), gpus.end());
  }
  return environment;
}

}  // namespace syncopate::experiments

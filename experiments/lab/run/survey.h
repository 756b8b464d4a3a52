// Survey: the facts about the hosts of a run that are needed to plan it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/cluster/host/host_report.h"
#include "experiments/cluster/namespaces/namespace_hosts.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/cluster/plan/placement.h"
#include "experiments/cluster/tasks/task_group.h"
#include "experiments/config/resolved_run.h"
#include "experiments/config/run_request.h"

namespace syncopate::experiments {

struct Survey {
  Machine here;                   // the host where this runs
  std::string listen_address;     // where other hosts reach this one; empty without others
  std::vector<HostReport> hosts;  // one for each of --hosts, in order; empty without others
  // If somebody else has started the processes of the run: this one's place, and all tasks by rank; if these are on
  // several hosts, also what --hosts is to other runs.
  std::optional<TaskPlace> place = {};
  std::vector<Task> tasks = {};
  std::vector<HostSlots> task_hosts = {};
  // The hosts themselves, where they are namespaces: they last as long as the survey.
  std::shared_ptr<NamespaceHosts> namespaces;
};

// Queries all other hosts at once, through the remote shell. Makes them first, and moves here, where they are
// namespaces (NamespaceHosts::make). Loads NVIDIA's driver here unless GPUs are not wanted. `config` must be one that
// check() accepts. Fails with invalid argument, naming the problem of each host that cannot take part, or if this host
// has no address at which the others can reach it.
Result<Survey> survey(const RunRequest& config);

// The same for a run whose processes somebody else has started. `tasks`: those that have been gathered, or none for a
// dry run on one host, which holds nobody.
Survey survey_of_tasks(const RunRequest& config, const TaskPlace& place, const TaskGroup& tasks);

// Return how processes are started on the other hosts, and where these reach this one. The latter fails as survey()
// does.
RemoteShell remote_shell_of(const RunSettings& config);
Result<std::string> listen_address_of(const RunRequest& config);

Machines machines_of(const Survey& survey);

// Returns the input of a plan. `config` is one that the survey was made for, or one of local.
Cluster cluster_of(const ResolvedRun& config, const Survey& survey);

// Return the path of this program, and the name of this host.
std::string own_program();
std::string own_host();

}  // namespace syncopate::experiments

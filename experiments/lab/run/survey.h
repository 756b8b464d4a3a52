// Survey: what must be known of the hosts of a run before it can be planned.
#pragma once

#include <string>
#include <vector>

#include "experiments/cluster/host/host_report.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/cluster/plan/placement.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct Survey {
  Machine here;                   // where this runs
  std::string listen_address;     // where the other hosts reach this one; empty without others
  std::vector<HostReport> hosts;  // of --hosts, in order; empty without others
};

// Asks all other hosts at once, through the remote shell; loads NVIDIA's driver here unless GPUs are not wanted.
// `config` has been validated. Invalid argument, with what is wrong for each host that cannot take part, or with no
// address at which this one can be reached.
Result<Survey> survey(const RunConfig& config);

Machines machines_of(const Survey& survey);

// What a plan is made of. `config`, resolved, is one that the survey was made for, or one of local.
Cluster cluster_of(const RunConfig& config, const Survey& survey);

// This program, and the name of this host.
std::string own_program();
std::string own_host();

}  // namespace syncopate::experiments

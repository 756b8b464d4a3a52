// What a run is carried out on, for its record (environment.json).
#pragma once

#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/plan/job_plan.h"
#include "experiments/lab/run/survey.h"

namespace syncopate::experiments {

// Returns this machine and program, and, of a run on several hosts, each of them, as the survey found it.
Environment environment_of(const JobPlan& plan, const Cluster& cluster, const Survey& survey);

}  // namespace syncopate::experiments

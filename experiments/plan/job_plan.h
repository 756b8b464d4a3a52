// JobPlan: the processes of a run as plain data, decided before anything is started. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

enum class Role { kWorker, kServer, kEvaluator };

// "worker", "server", "evaluator"
const char* name_of(Role role);

struct ProcessSpec {
  Role role = Role::kWorker;
  int rank = 0;  // within its role, from 0; worker 0 is the chief
  std::string host;
  std::vector<std::string> arguments;                            // without the program; the launcher adds --rendezvous
  std::vector<std::pair<std::string, std::string>> environment;  // beside the inherited one
  std::optional<int> gpu;                                        // that it computes on, by the driver's count

  // "worker 1", "server 0", "evaluator": what verdicts and logs call it.
  std::string name() const;
};

struct JobPlan {
  std::string run_id;
  std::vector<ProcessSpec> processes;  // servers, workers, evaluator; each by rank
};

// The processes that `config` (which has been through resolve()) asks for, all on `host`, the coordinator's, which has
// `gpus` GPUs: worker r computes on GPU r modulo `gpus`. The arguments show role, rank and run in a process list:
// "--role=worker --rank=1 --run=20261120-135501-ps-async".
JobPlan make_plan(const RunConfig& config, const std::string& run_id, const std::string& host, int gpus = 0);

// The executable of a process: `program`, or, for one that computes on a GPU, the one beside it that is linked with
// CUDA's libraries.
std::string program_of(const ProcessSpec& process, const std::string& program);
std::string gpu_program_of(const std::string& program);

// How many of the plan's processes have this role.
int count_of(const JobPlan& plan, Role role);

// For --dry-run: a table of role, rank, host and command, a line a process.
std::string to_text(const JobPlan& plan, const std::string& program);

}  // namespace syncopate::experiments

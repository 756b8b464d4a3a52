// JobPlan: the processes of a run as plain data, decided before anything is started. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/remote_shell.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

enum class Role { kWorker, kServer, kStandby, kEvaluator };

// "worker", "server", "standby", "evaluator"
const char* name_of(Role role);

// Whether it has shards of a server.
inline bool serves(Role role) { return role == Role::kServer || role == Role::kStandby; }

struct ProcessSpec {
  Role role = Role::kWorker;
  int rank = 0;  // within its role, from 0; worker 0 is the chief; a standby has its server's
  std::string host;
  std::vector<std::string> arguments;                            // without the program; the launcher adds --rendezvous
  std::vector<std::pair<std::string, std::string>> environment;  // beside the inherited one
  std::optional<int> gpu;                                        // that it computes on, by its host's driver's count
  bool remote = false;                                           // on another host than the coordinator

  // "worker 1", "server 0", "evaluator": what verdicts and logs call it.
  std::string name() const;
};

struct JobPlan {
  std::string run_id;
  std::vector<ProcessSpec> processes;  // servers, workers, evaluator; each by rank
  RemoteShell remote_shell = {};       // for those that are remote
};

// A host that workers and servers are laid over.
struct PlanHost {
  std::string name;
  int slots = 1;
  bool remote = false;
  int gpus = 0;
  std::string interface = {};  // by which it reaches the other hosts; not needed where there are none
};

struct Cluster {
  std::string coordinator;      // the host of run_experiment, where the evaluator is, too
  std::vector<PlanHost> hosts;  // not empty; with slots for all workers
  RemoteShell remote_shell = {};
};

// The processes that `config` (which has been through resolve()) asks for. Workers fill the hosts' slots in order; the
// i-th of a host computes on its GPU i modulo their number. Servers go to the hosts in turn, each
// standby to the host behind its server's. The arguments show role,
// rank and run in a process list: "--role=worker --rank=1 --run=20261120-135501-ps-async".
JobPlan make_plan(const RunConfig& config, const std::string& run_id, const Cluster& cluster);
// All on the coordinator's host, which has `gpus` GPUs.
JobPlan make_plan(const RunConfig& config, const std::string& run_id, const std::string& host, int gpus = 0);

// The executable of a process: `program`, or, for one that computes on a GPU, the one beside it that is linked with
// CUDA's libraries.
std::string program_of(const ProcessSpec& process, const std::string& program);
std::string gpu_program_of(const std::string& program);

// The command line that starts a process, with `more` behind its arguments; `program` is the executable here. On
// another host it is the remote shell's, which then starts a guard with the process below it (process/guard.h).
std::vector<std::string> command_line_of(const JobPlan& plan, const ProcessSpec& process, const std::string& program,
                                         const std::vector<std::string>& more = {});

bool has_remote_processes(const JobPlan& plan);

// How many of the plan's processes have this role.
int count_of(const JobPlan& plan, Role role);

// For --dry-run: a table of role, rank, host and command, a line a process.
std::string to_text(const JobPlan& plan, const std::string& program);

}  // namespace syncopate::experiments

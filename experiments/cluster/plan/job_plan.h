// JobPlan: the processes of a run as plain data, decided before anything is started. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/remote_shell.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

enum class Role { kWorker, kServer, kStandby, kEvaluator };

// "worker", "server", "standby", "evaluator"
const char* name_of(Role role);

// Returns whether the role serves shards.
inline bool serves(Role role) { return role == Role::kServer || role == Role::kStandby; }

struct ProcessSpec {
  Role role = Role::kWorker;
  int rank = 0;  // within its role, from 0; worker 0 is the chief; a standby has its server's rank
  std::string host;
  std::vector<std::string> arguments;                            // without the program; the launcher adds --rendezvous
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to the inherited one
  std::optional<int> gpu;  // the GPU that it computes on, by its host's driver's count
  bool remote = false;     // whether it is on another host than the coordinator
  // A program of the person's own, instead of ours. Where the run spans hosts, `arguments` are those of the relay above
  // it (command/relay.h).
  std::vector<std::string> command = {};
  std::string task = {};  // address of the task that runs it (cluster/tasks); empty: none, a child does
  // Index in the plan of the process whose threads it is: it has a control connection of its own, starts and ends with
  // that one, and has no arguments. None: it is a process of its own.
  std::optional<std::size_t> within = {};

  // Returns the name in verdicts and logs: "worker 1", "server 0", "evaluator".
  std::string name() const;
};

struct JobPlan {
  std::string run_id;
  std::vector<ProcessSpec> processes;         // servers, workers, evaluator if there is one; each by rank
  RemoteShell remote_shell = {};              // starts those that are remote
  std::vector<std::string> mpi_options = {};  // more words for mpirun
};

// A host that workers and servers are placed on.
struct PlanHost {
  std::string name;
  int slots = 1;
  bool remote = false;
  int gpus = 0;
  std::string interface = {};  // the interface by which it reaches the other hosts; not needed if there are none
  bool is_task = false;        // whether it is one task of several that somebody else has started, with one slot
  std::string task = {};       // the address of that task; empty: the coordinator's own
  int first_gpu = 0;           // the GPU of its first slot
};

struct Cluster {
  std::string coordinator;      // the host of run_experiment, where the evaluator also runs
  std::vector<PlanHost> hosts;  // not empty; with slots for all workers
  // Where servers are, then standbys, by rank. Empty: on `hosts` in turn, each standby on the host after its server's.
  std::vector<PlanHost> server_hosts = {};
  RemoteShell remote_shell = {};
};

// Returns the plan of the processes of a run; a profile, which learns nothing, has no evaluator. Of a program of the
// person's own it has the workers alone: worker 0 starts the servers, and nobody else knows the model. Workers fill the
// hosts' slots in order; the i-th worker of a host computes on its GPU i modulo their number. Colocated servers are
// within the processes of workers, and spare ones behind them on hosts without slots. The arguments show role, rank and
// run in a process list:
// "--role=worker --rank=1 --run=20261120-135501-ps-async".
JobPlan make_plan(const ResolvedRun& config, const std::string& run_id, const Cluster& cluster);
// The same with all processes on the coordinator's host, which has `gpus` GPUs.
JobPlan make_plan(const ResolvedRun& config, const std::string& run_id, const std::string& host, int gpus = 0);

// Return the executable of a process: `program`, or, if it computes on a GPU, the one beside it that is linked with
// CUDA's libraries.
std::string program_of(const ProcessSpec& process, const std::string& program);
std::string gpu_program_of(const std::string& program);

// Returns the command line that starts a process, with `more` appended to its arguments; `program` is the executable
// here. On another host the command line is the remote shell's, which starts a guard with the process below it
// (process/guard.h); in a task, the task shell's (tasks/task_shell.h).
std::vector<std::string> command_line_of(const JobPlan& plan, const ProcessSpec& process, const std::string& program,
                                         const std::vector<std::string>& more = {});

bool has_remote_processes(const JobPlan& plan);

// Returns the members of the plan that are threads of this process.
std::vector<std::size_t> members_within(const JobPlan& plan, std::size_t process);

// Returns how many of the plan's processes have this role.
int count_of(const JobPlan& plan, Role role);

// For --dry-run: returns a table of role, rank, host and command, one line per process.
std::string to_text(const JobPlan& plan, const std::string& program);

}  // namespace syncopate::experiments

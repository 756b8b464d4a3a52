// Launcher: starts the processes of a plan. The output of each goes to a file of its own.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/child_process.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/secret_text.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

struct LaunchOptions {
  std::string program;        // path of the executable; program_of() says which one a process runs
  std::string rendezvous;     // the coordinator's address, passed on as --rendezvous=
  std::string log_directory;  // must exist; receives worker-0.log, server-1.log, ...
  SecretText secret;          // the run's, as one line with its line break; each process receives it secretly
};

// A child of this process.
struct StartedChild {
  pid_t pid = 0;
  ProcessHandle handle;
  std::optional<std::size_t> process;    // index in the plan; none: it carries processes (mpirun)
  std::vector<std::size_t> within = {};  // those of the plan that are its threads
  std::string name;                      // "worker 1", "mpirun"
  std::string log_file;
  FileDescriptor input = {};     // keeps the standard input of the child open, if it has one
  FileDescriptor shared = {};    // keeps the shared secret readable for the processes that the child carries
  bool is_remote_shell = false;  // it stands for a process on another host or in a task, which ends with it
  bool is_guard = false;         // when its input ends it ends the guarded process, and then itself (process/guard.h)
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  // Starts everything or nothing: on failure, what was started is killed.
  virtual Result<std::vector<StartedChild>> start(const JobPlan& plan, const LaunchOptions& options) = 0;
  // Restarts one process of the plan, which has ended, as the incarnation of that number, from 1. Fails with invalid
  // argument if the carrier of the processes cannot do that; the evaluator is always a child of our own.
  virtual Result<StartedChild> start_again(const JobPlan& plan, const LaunchOptions& options, std::size_t process,
                                           int incarnation) = 0;
};

// Makes a launcher that starts one child for each process of the plan, in a process group of its own, so that Ctrl-C
// only reaches the coordinator. For a process on another host, the child is the remote shell; in a task, the task
// shell.
std::unique_ptr<Launcher> make_local_launcher();

// Makes a launcher that starts workers and servers under one mpirun, and the evaluator as a child beside it. mpirun
// starts its daemons on other hosts through the run's remote shell (process/mpirun_agent.h). It does not pass on a
// standard input that could carry a secret, so the secret is shared through a file (process/shared_keys.h).
std::unique_ptr<Launcher> make_mpirun_launcher();

// Returns mpirun's command line: one application context for each process, so that each has its own role and rank.
//   mpirun OPTIONS -n 1 syncopate --role=worker --rank=0 ... : -n 1 syncopate --role=worker --rank=1 ...
// On several hosts each context names its host in the plan.
std::vector<std::string> mpirun_command(const JobPlan& plan, const LaunchOptions& options);

// Checks whether mpirun would start anything for this user: root must allow it in the environment, with Open MPI's own
// variables. Fails with invalid argument, naming the missing one.
Status check_mpirun_allows(uid_t user);

// Starts one child with the given command line (its first element is the program, looked up in PATH) and environment
// additions; standard output and error go to `log_file`. It has no input, or `input` (less than 4 KiB, possibly empty),
// which then stays open until StartedChild::input is closed. With `output`, a descriptor, standard output goes there,
// and standard error alone to the file. Shared by the launchers.
Result<StartedChild> start_child(const std::vector<std::string>& command, const EnvironmentVariables& environment,
                                 const std::string& name, const std::string& log_file,
                                 std::optional<std::string_view> input = {}, std::optional<int> output = {});

// Ends a running child: kills it, or lets a guard do so.
void end_child(StartedChild& child);
// Waits until it has ended. A guard is killed if that takes more than some seconds.
void reap(const StartedChild& child);
// Ends children and waits until they have ended.
void kill_and_reap(std::vector<StartedChild>& children);

// Returns "worker-1.log" for the process named "worker 1".
std::string log_name_of(const ProcessSpec& process);
// Returns the last line in a log that says anything, with the file's name behind it; before it, what Python has raised
// last, where that is another line.
std::string last_words_of(const std::string& log_file);

}  // namespace syncopate::experiments

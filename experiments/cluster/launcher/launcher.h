// Launcher: starts the processes of a plan. What they print goes to files of their own.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/secret_text.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

struct LaunchOptions {
  std::string program;        // path of the executable; program_of() says which a process has
  std::string rendezvous;     // the coordinator's address, passed on as --rendezvous=
  std::string log_directory;  // exists; receives worker-0.log, server-1.log, ...
  SecretText secret;          // the run's, in a line with its end, which each process gets secretly
};

// A child of this process.
struct StartedChild {
  pid_t pid = 0;
  FileDescriptor handle;               // pidfd: readable once the child has ended
  std::optional<std::size_t> process;  // index in the plan; none: it carries processes (mpirun)
  std::string name;                    // "worker 1", "mpirun"
  std::string log_file;
  FileDescriptor input = {};     // of one whose standard input is to stay open: it does as long as this
  FileDescriptor lent = {};      // of one that carries others: the secret, which they can read as long as this is open
  bool is_remote_shell = false;  // it stands for a process on another host, which ends when its input does
  bool is_guard = false;         // it ends what it guards, and then itself, when its input ends (process/guard.h)
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  // Starts everything, or nothing that lives on: on failure, what was started is killed.
  virtual Result<std::vector<StartedChild>> start(const JobPlan& plan, const LaunchOptions& options) = 0;
  // Starts one process of the plan again, which has ended, as the incarnation of that number, from 1. Fails with
  // invalid argument where what carries the processes cannot do that; the evaluator is a child of our own everywhere.
  virtual Result<StartedChild> start_again(const JobPlan& plan, const LaunchOptions& options, std::size_t process,
                                           int incarnation) = 0;
};

// One child process for each process of the plan, in a process group of its own: Ctrl-C reaches the coordinator alone.
// For a process on another host, the child is the remote shell.
std::unique_ptr<Launcher> make_local_launcher();

// Workers and servers under one mpirun; the evaluator as a child beside it. mpirun starts its daemons on other hosts
// through the run's remote shell (process/mpirun_agent.h), and passes no standard input on that could carry a secret:
// that is lent (process/lent_keys.h).
std::unique_ptr<Launcher> make_mpirun_launcher();

// That mpirun's command line: one application context for each process, so that its role and rank stand on its own.
//   mpirun OPTIONS -n 1 syncopate --role=worker --rank=0 ... : -n 1 syncopate --role=worker --rank=1 ...
// On several hosts each names its own: that of the plan.
std::vector<std::string> mpirun_command(const JobPlan& plan, const LaunchOptions& options);

// Whether mpirun would start anything for this user: root has to allow it, in the environment, by Open MPI's own
// variables. Invalid argument with the one that is missing.
Status check_mpirun_allows(uid_t user);

// Starts one child with the given command line (its first element is the program, looked up in PATH) and environment
// additions; standard output and error go to `log_file`. It has no input, or `input` (less than 4 KiB, perhaps none),
// which then goes on until StartedChild::input is closed. Shared by the launchers.
Result<StartedChild> start_child(const std::vector<std::string>& command,
                                 const std::vector<std::pair<std::string, std::string>>& environment,
                                 const std::string& name, const std::string& log_file,
                                 std::optional<std::string_view> input = {});

// Ends what is running: kills it, or lets a guard do so.
void end_child(StartedChild& child);
// Waits until it is gone, for some seconds at most where it is a guard, which is killed then.
void reap(const StartedChild& child);
// Ends children and waits until they are gone.
void kill_and_reap(std::vector<StartedChild>& children);

// "worker-1.log" for the process named "worker 1".
std::string log_name_of(const ProcessSpec& process);

}  // namespace syncopate::experiments

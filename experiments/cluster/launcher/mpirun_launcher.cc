#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/process/mpirun_agent.h"
#include "experiments/cluster/process/shared_keys.h"

namespace syncopate::experiments {
namespace {

using EnvironmentVariables = std::vector<std::pair<std::string, std::string>>;

class MpirunLauncher final : public Launcher {
 public:
  Result<std::vector<StartedChild>> start(const JobPlan& plan, const LaunchOptions& options) override {
    Result<std::vector<StartedChild>> children = start_evaluator(plan, options);
    if (!children.ok()) return children;
    Result<StartedChild> mpirun = start_mpirun(plan, options);
    if (!mpirun.ok()) {
      kill_and_reap(*children);
      return mpirun.status();
    }
    children->push_back(std::move(*mpirun));
    return children;
  }

  Result<StartedChild> start_again(const JobPlan& plan, const LaunchOptions& options, std::size_t process,
                                   int incarnation) override {
    if (plan.processes[process].role == Role::kEvaluator) {
      return make_local_launcher()->start_again(plan, options, process, incarnation);
    }
    return Status::invalid_argument(fmt::format("mpirun cannot start {} again", plan.processes[process].name()));
  }

 private:
  static Result<std::vector<StartedChild>> start_evaluator(const JobPlan& plan, const LaunchOptions& options) {
    JobPlan beside = plan;
    std::erase_if(beside.processes, [](const ProcessSpec& process) { return process.role != Role::kEvaluator; });
    Result<std::vector<StartedChild>> children = make_local_launcher()->start(beside, options);
    if (!children.ok()) return children;
    for (StartedChild& child : *children) {
      for (std::size_t i = 0; i < plan.processes.size(); ++i) {
        if (plan.processes[i].name() == child.name) child.process = i;
      }
    }
    return children;
  }

  static Result<StartedChild> start_mpirun(const JobPlan& plan, const LaunchOptions& options) {
    const std::string_view secret = options.secret.view();
    SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor shared, lend(secret.substr(0, secret.find('\n'))));
    EnvironmentVariables environment{{kSharedKeys, path_of(shared)}};
    const bool spans_hosts = has_remote_processes(plan);
    if (!spans_hosts) {
      // Where its sockets are kept to the loopback interface, it must look for them there. Its command line wins.
      for (const char* framework : {"oob", "btl"}) {
        environment.emplace_back(fmt::format("OMPI_MCA_{}_tcp_if_include", framework), "lo");
      }
    }
    if (spans_hosts) {
      // mpirun splits the agent's command line at blanks, and takes colons as alternatives.
      if (options.program.find_first_of(" :") != std::string::npos) {
        return Status::invalid_argument(
            fmt::format("--launcher=mpirun: cannot start {} for other hosts, since mpirun would cut that path "
                        "at its blanks and colons; build at another",
                        options.program));
      }
      for (auto& variable : environment_of_agent(plan.remote_shell)) environment.push_back(std::move(variable));
    }
    std::vector<std::string> command = mpirun_command(plan, options);
    command.insert(command.begin(), {options.program, spans_hosts ? "--local-guard" : "--loopback-guard"});
    Result<StartedChild> mpirun =
        start_child(command, environment, "mpirun", options.log_directory + "/mpirun.log", "");
    if (!mpirun.ok()) return mpirun;
    mpirun->shared = std::move(shared);
    mpirun->is_guard = true;
    return mpirun;
  }
};

// Daemons stay below their guards, and are all started from this host, where the agent is.
void add_remote_options(std::vector<std::string>& command, const std::string& program) {
  command.insert(command.end(), {"--leave-session-attached", "--mca", "plm_rsh_agent", program + " --mpirun-agent",
                                 "--mca", "plm_rsh_no_tree_spawn", "1"});
}

void add_process(std::vector<std::string>& command, const JobPlan& plan, const ProcessSpec& process,
                 const LaunchOptions& options) {
  command.insert(command.end(), {"-n", "1"});
  if (has_remote_processes(plan))
    command.insert(command.end(), {"--host", process.remote ? process.host : "localhost"});
  for (const auto& [name, value] : process.environment) command.insert(command.end(), {"-x", name + "=" + value});
  command.push_back(program_of(process, process.remote ? plan.remote_shell.program : options.program));
  command.insert(command.end(), process.arguments.begin(), process.arguments.end());
  command.insert(command.end(), {"--keys-shared", "--rendezvous=" + options.rendezvous});
}

}  // namespace

std::vector<std::string> mpirun_command(const JobPlan& plan, const LaunchOptions& options) {
  // More ranks than cores are allowed; they then yield to each other while they wait.
  std::vector<std::string> command{"mpirun", "--oversubscribe",     "--bind-to", "none",
                                   "--mca",  "mpi_yield_when_idle", "1"};
  if (has_remote_processes(plan)) add_remote_options(command, options.program);
  command.insert(command.end(), plan.mpi_options.begin(), plan.mpi_options.end());
  bool first = true;
  for (const ProcessSpec& process : plan.processes) {
    if (process.role == Role::kEvaluator) continue;
    if (!first) command.push_back(":");
    first = false;
    add_process(command, plan, process, options);
  }
  return command;
}

Status check_mpirun_allows(uid_t user) {
  if (user != 0) return {};
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && std::string_view(value) == "1") continue;
    return Status::invalid_argument(
        fmt::format("--launcher=mpirun: Open MPI is not for root, unless OMPI_ALLOW_RUN_AS_ROOT=1 and "
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set, and {} is not; set both, or be another user",
                    name));
  }
  return {};
}

std::unique_ptr<Launcher> make_mpirun_launcher() { return std::make_unique<MpirunLauncher>(); }

}  // namespace syncopate::experiments

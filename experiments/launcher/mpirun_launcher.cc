#include <unistd.h>

#include "experiments/launcher/launcher.h"

namespace syncopate::experiments {
namespace {

class MpirunLauncher final : public Launcher {
 public:
  Result<std::vector<StartedChild>> start(const JobPlan& plan, const LaunchOptions& options) override {
    JobPlan beside = plan;
    std::erase_if(beside.processes, [](const ProcessSpec& process) { return process.role != Role::kEvaluator; });
    Result<std::vector<StartedChild>> children = make_local_launcher()->start(beside, options);
    if (!children.ok()) return children;
    for (StartedChild& child : *children) {
      for (std::size_t i = 0; i < plan.processes.size(); ++i) {
        if (plan.processes[i].name() == child.name) child.process = i;
      }
    }
    Result<StartedChild> mpirun =
        start_child(mpirun_command(plan, options), {}, "mpirun", options.log_directory + "/mpirun.log");
    if (!mpirun.ok()) {
      kill_and_reap(*children);
      return mpirun.status();
    }
    children->push_back(std::move(*mpirun));
    return children;
  }
};

}  // namespace

std::vector<std::string> mpirun_command(const JobPlan& plan, const LaunchOptions& options) {
  // More ranks than cores are welcome, and then yield to each other while they wait.
  std::vector<std::string> command{"mpirun", "--oversubscribe",     "--bind-to", "none",
                                   "--mca",  "mpi_yield_when_idle", "1"};
  if (geteuid() == 0) command.push_back("--allow-run-as-root");
  bool first = true;
  for (const ProcessSpec& process : plan.processes) {
    if (process.role == Role::kEvaluator) continue;
    if (!first) command.push_back(":");
    first = false;
    command.insert(command.end(), {"-n", "1"});
    for (const auto& [name, value] : process.environment) command.insert(command.end(), {"-x", name + "=" + value});
    command.push_back(program_of(process, options.program));
    command.insert(command.end(), process.arguments.begin(), process.arguments.end());
    command.push_back("--rendezvous=" + options.rendezvous);
  }
  return command;
}

std::unique_ptr<Launcher> make_mpirun_launcher() { return std::make_unique<MpirunLauncher>(); }

}  // namespace syncopate::experiments

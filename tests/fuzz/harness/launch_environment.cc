// What launchers put into the environment: TF_CONFIG, a list of Slurm's nodes, a rank; and the command and the address
// of a task.
#include <string>

#include "common/launch/node_list.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_command.h"
#include "experiments/config/started_by/slurm_allocation.h"
#include "experiments/config/started_by/started_task.h"
#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

using namespace experiments;

void check(const Variables& environment) {
  const FoundPlace place = started_task(environment, StartedBy::kAuto);
  if (!place.ok()) {
    require(!place.status().message().empty(), "what is refused is refused with a reason");
  } else if (*place && !(*place)->evaluates) {
    require((*place)->rank >= 0 && (*place)->rank < (*place)->size, "a rank is below the number of ranks");
    const std::optional<FixedRoles> roles = (*place)->roles;
    require(!roles || (roles->workers > 0 && roles->workers + roles->servers == (*place)->size),
            "each task has one role");
  }
}

const Harness launch_environment("launch_environment", [](Bytes input) {
  const std::string text(text_of(input));
  check({{"TF_CONFIG", text}});
  check({{"RANK", text}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", text}, {"MASTER_PORT", "1"}});
  const Result<std::vector<std::string>> nodes = parse_node_list(text);
  require(!nodes.ok() || !nodes->empty(), "a list that is taken has a node");
  (void)slurm_hosts({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_TASKS_PER_NODE", text}});
  const Result<NetworkTask> task = parse_network_address("tcp://" + text);
  require(!task.ok() || (task->rank >= 0 && task->rank < task->size), "an address is of one of the tasks");
  const Result<TaskCommand> command = parse_task_command(text);
  require(!command.ok() || to_bytes(*command) == text, "a command is what was sent");
});

}  // namespace
}  // namespace syncopate::fuzz

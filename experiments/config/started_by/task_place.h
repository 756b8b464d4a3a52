// TaskPlace: the place of this process among those that another program has started together, as that program says it
// in the environment: Slurm's srun, mpirun, torchrun, or a platform that sets TF_CONFIG. Each such process is a task.
// Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::experiments {

// An environment: values by name.
using Variables = std::map<std::string, std::string, std::less<>>;

// Who may have started this process. kAuto: whoever the environment names; kNobody: nobody, whatever it names.
enum class StartedBy { kAuto, kNobody, kSlurm, kOpenMpi, kPmi, kTorchrun, kTfConfig };

// "auto", "none", "slurm", "openmpi", "pmi", "torchrun", "tf-config"
const char* name_of(StartedBy value);
// Fails with invalid argument for a name that is not among these.
Result<StartedBy> parse_started_by(std::string_view name);

// The roles that the environment gives to tasks: first workers, then servers.
struct FixedRoles {
  int workers = 1;
  int servers = 0;
  bool operator==(const FixedRoles&) const = default;
};

struct TaskPlace {
  StartedBy by = StartedBy::kAuto;
  int rank = 0;
  int size = 1;
  int local_rank = 0;    // among the tasks of its host
  bool one_host = true;  // whether the launcher has put all tasks on one host
  // Where tasks on other hosts reach rank 0, a name or an address: as MASTER_ADDR says, else the launcher; empty if
  // neither does.
  std::string first_host = {};
  // What tasks on several hosts have in common and nobody else: the path of a file; empty if none is named.
  std::string secret_file = {};
  // Names what was started, the same in all of its tasks: "slurm-17.0". Empty if the environment does not name it; it
  // is then what this process's parent has started.
  std::string job = {};
  std::optional<FixedRoles> roles = {};  // none: the options decide
  bool evaluates = false;                // TF_CONFIG's evaluator, which is none of the ranks
};

// Returns the place that `environment` gives to this process; none if nobody has started it together with others, as in
// a shell inside an allocation. If several name a place they must agree, but for an mpirun or a torchrun that srun has
// started. `by` names the one to believe, or kNobody. Fails with invalid argument for what is contradictory.
Result<std::optional<TaskPlace>> task_place(const Variables& environment, StartedBy by);

// Returns what a person calls the one who has started the task: "srun", "mpirun".
const char* launcher_of(StartedBy by);

}  // namespace syncopate::experiments

// TaskPlace: the place of this process among those that another program has started together, as that program says it
// in the environment: Slurm's srun, mpirun, torchrun, or a platform that sets TF_CONFIG. Each such process is a task.
// Pure, but for own_variables().
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

// An environment: values by name.
using Variables = std::map<std::string, std::string, std::less<>>;

// The environment of this process.
Variables own_variables();

// Who may have started this process. kAuto: whoever the environment names; kNobody: nobody, whatever it names.
enum class StartedBy { kAuto, kNobody, kSlurm, kOpenMpi, kPmi, kTorchrun, kTfConfig };

// Returns what a person calls the one who has started the task: "srun", "mpirun".
const char* launcher_of(StartedBy by);

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

using FoundPlace = Result<std::optional<TaskPlace>>;

// Reads the place from the variables of one launcher. Returns none if they are not there, and fails with invalid
// argument if they contradict each other.
struct PlaceParser {
  StartedBy by;
  FoundPlace (*parse)(const Variables& environment);
};

// torchrun, Open MPI, other MPIs and Slurm, in this order.
std::span<const PlaceParser> launcher_parsers();

// Returns the place that `environment` gives to this process, by the parsers of `by`, or by all if that is kAuto; none
// if nobody has started it together with others, as in a shell inside an allocation. If several parsers name a place
// they must agree, but for an mpirun or a torchrun that srun has started. Fails with invalid argument, as parsers do,
// for what is contradictory.
FoundPlace task_place(const Variables& environment, StartedBy by,
                      std::span<const PlaceParser> parsers = launcher_parsers());

// Returns the place of a rank of a person's own program: RANK and WORLD_SIZE say it where they are set, as for
// torch.distributed, whatever else is; without them, what has started it.
FoundPlace rank_place(const Variables& environment);

// Returns where the tasks of `place` meet, "HOST:PORT": MASTER_ADDR and MASTER_PORT where the environment has them,
// else the host of rank 0, as the launcher names it, and a port drawn from the job's name, below those that the kernel
// gives to connections that ask for none. Fails with invalid argument, and a remedy, if these are not known.
Result<std::string> meeting_address(const TaskPlace& place, const Variables& environment);

}  // namespace syncopate

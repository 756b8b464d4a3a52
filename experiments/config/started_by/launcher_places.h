// The place of a task, read from the variables of one launcher. Each returns none if that launcher's variables are not
// there, and fails with invalid argument if they contradict each other. Pure.
#pragma once

#include <initializer_list>
#include <optional>

#include "experiments/config/started_by/task_place.h"

namespace syncopate::experiments {

using FoundPlace = Result<std::optional<TaskPlace>>;

// Slurm: only a task of a step has SLURM_STEP_ID. The script of sbatch and the shell of salloc have a job, but are
// none.
FoundPlace place_by_slurm(const Variables& environment);
// Open MPI: OMPI_COMM_WORLD_RANK and its like.
FoundPlace place_by_open_mpi(const Variables& environment);
// Other MPIs, by the process management interface: PMI_RANK, PMI_SIZE (MPICH, Intel MPI, srun --mpi=pmi2).
FoundPlace place_by_pmi(const Variables& environment);
// torchrun, or a person who sets the same: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT.
FoundPlace place_by_torchrun(const Variables& environment);
// TensorFlow's description of a cluster: TF_CONFIG, with addresses of chief, worker and ps, and the task's own role.
FoundPlace place_by_tf_config(const Variables& environment);

// Shared by the parsers.

// Returns the whole number from `least` in a variable; none if it is not set.
Result<std::optional<int>> number_in(const Variables& environment, std::string_view name, int least);
// Returns the value of a variable; empty if it is not set.
std::string text_in(const Variables& environment, std::string_view name);
// Fails unless 0 <= rank < size, naming both variables.
Status check_rank(std::string_view rank_name, int rank, std::string_view size_name, int size);

}  // namespace syncopate::experiments

// The parsers of launchers' variables (PlaceParser), and what they share. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/launch/task_place.h"

namespace syncopate {

// Slurm: only a task of a step has SLURM_STEP_ID. The script of sbatch and the shell of salloc have a job, but are
// none.
FoundPlace place_by_slurm(const Variables& environment);
// Open MPI: OMPI_COMM_WORLD_RANK and its like.
FoundPlace place_by_open_mpi(const Variables& environment);
// Other MPIs, by the process management interface: PMI_RANK, PMI_SIZE (MPICH, Intel MPI, srun --mpi=pmi2).
FoundPlace place_by_pmi(const Variables& environment);
// torchrun, or a person who sets the same: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT.
FoundPlace place_by_torchrun(const Variables& environment);

// Returns the whole number from `least` in a variable; none if it is not set.
Result<std::optional<int>> number_in(const Variables& environment, std::string_view name, int least);
// Returns the value of a variable; empty if it is not set.
std::string text_in(const Variables& environment, std::string_view name);
// Fails unless 0 <= rank < size, naming both variables.
Status check_rank(std::string_view rank_name, int rank, std::string_view size_name, int size);

}  // namespace syncopate

#include <fmt/format.h>

#include "common/launch/launcher_places.h"

namespace syncopate {
namespace {

// The names of one implementation's variables.
struct Names {
  StartedBy by;
  const char *rank, *size, *local_rank, *local_size;
};

FoundPlace place_by(const Variables& environment, const Names& names, std::string job) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> rank, number_in(environment, names.rank, 0));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> size, number_in(environment, names.size, 1));
  if (!rank && !size) return std::optional<TaskPlace>();
  if (!rank || !size) {
    return Status::invalid_argument(fmt::format("{} is set, but not {}: mpirun sets both",
                                                rank ? names.rank : names.size, rank ? names.size : names.rank));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_rank(names.rank, *rank, names.size, *size));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> local_rank, number_in(environment, names.local_rank, 0));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> local_size, number_in(environment, names.local_size, 1));
  return std::optional(TaskPlace{.by = names.by,
                                 .rank = *rank,
                                 .size = *size,
                                 .local_rank = local_rank.value_or(0),
                                 .one_host = local_size == size,
                                 .job = std::move(job)});
}

}  // namespace

FoundPlace place_by_open_mpi(const Variables& environment) {
  const std::string name = text_in(environment, "PMIX_NAMESPACE");
  return place_by(environment,
                  {StartedBy::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                   "OMPI_COMM_WORLD_LOCAL_SIZE"},
                  name.empty() ? "" : "openmpi-" + name);
}

FoundPlace place_by_pmi(const Variables& environment) {
  const std::string name = text_in(environment, "PMI_JOBID");
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::optional<TaskPlace> place,
      place_by(environment, {StartedBy::kPmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
               name.empty() ? "" : "pmi-" + name));
  // srun sets these beside its own, which say more.
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<TaskPlace> of_slurm, place_by_slurm(environment));
  if (place && of_slurm && place->rank == of_slurm->rank && place->size == of_slurm->size) return of_slurm;
  return place;
}

}  // namespace syncopate

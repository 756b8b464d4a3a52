#include <fmt/format.h>

#include "common/launch/launcher_places.h"
#include "common/launch/node_list.h"

namespace syncopate {

FoundPlace place_by_slurm(const Variables& environment) {
  const std::string step = text_in(environment, "SLURM_STEP_ID"), job = text_in(environment, "SLURM_JOB_ID");
  if (step.empty() || job.empty()) return std::optional<TaskPlace>();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> rank, number_in(environment, "SLURM_PROCID", 0));
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<int> size, number_in(environment, "SLURM_STEP_NUM_TASKS", 1));
  // SLURM_NTASKS is the job's in the script of sbatch, and a person may have set it for another step.
  if (!size) {
    SYNCOPATE_ASSIGN_OR_RETURN(size, number_in(environment, "SLURM_NTASKS", 1));
  }
  if (!rank || !size) return std::optional<TaskPlace>();
  SYNCOPATE_RETURN_IF_ERROR(check_rank("SLURM_PROCID", *rank, "SLURM_STEP_NUM_TASKS", *size));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> local_rank, number_in(environment, "SLURM_LOCALID", 0));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> nodes, number_in(environment, "SLURM_STEP_NUM_NODES", 1));
  // Rank 0 is on the first of them.
  const Result<std::vector<std::string>> hosts = parse_node_list(text_in(environment, "SLURM_STEP_NODELIST"));
  return std::optional(TaskPlace{.by = StartedBy::kSlurm,
                                 .rank = *rank,
                                 .size = *size,
                                 .local_rank = local_rank.value_or(0),
                                 .one_host = nodes == 1,
                                 .first_host = hosts.ok() && !hosts->empty() ? hosts->front() : "",
                                 .job = fmt::format("slurm-{}.{}", job, step)});
}

}  // namespace syncopate

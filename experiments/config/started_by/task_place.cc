#include "experiments/config/started_by/task_place.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "experiments/config/rank_variables.h"
#include "experiments/config/started_by/launcher_places.h"

namespace syncopate::experiments {
namespace {

using Parser = FoundPlace (*)(const Variables&);

constexpr std::array<std::pair<StartedBy, Parser>, 5> kParsers = {{
    {StartedBy::kTorchrun, place_by_torchrun},
    {StartedBy::kOpenMpi, place_by_open_mpi},
    {StartedBy::kPmi, place_by_pmi},
    {StartedBy::kTfConfig, place_by_tf_config},
    {StartedBy::kSlurm, place_by_slurm},
}};

// A process alone takes no part in anything, whoever has started it.
bool takes_part(const std::optional<TaskPlace>& place) { return place && (place->size > 1 || place->evaluates); }

std::string text_of(const TaskPlace& place) {
  return fmt::format("{} says rank {} of {}", launcher_of(place.by), place.rank, place.size);
}

// Returns whether srun has started what has started this process: an mpirun starts its daemons so, and a torchrun has
// as many groups as srun has tasks.
bool is_below_slurm(const TaskPlace& inner, const TaskPlace& outer, const Variables& environment) {
  if (outer.by != StartedBy::kSlurm) return false;
  if (inner.by == StartedBy::kOpenMpi) return true;
  return inner.by == StartedBy::kTorchrun && text_in(environment, "GROUP_RANK") == std::to_string(outer.rank) &&
         text_in(environment, "GROUP_WORLD_SIZE") == std::to_string(outer.size);
}

// The tasks of an allocation or of a torchrun that somebody else started, each a whole run of one process, are left to
// their starter; so a place counts only if it has others beside it.
Result<std::optional<TaskPlace>> agreed(std::vector<TaskPlace> places, const Variables& environment) {
  if (places.empty()) return std::optional<TaskPlace>();
  TaskPlace& first = places.front();
  for (std::size_t i = 1; i < places.size(); ++i) {
    const TaskPlace& other = places[i];
    if (first.rank == other.rank && first.size == other.size) continue;
    if (is_below_slurm(first, other, environment)) continue;
    return Status::invalid_argument(
        fmt::format("{}, {}: say which has started this process, with --started-by={} or {}, or --started-by=none",
                    text_of(first), text_of(other), name_of(first.by), name_of(other.by)));
  }
  return std::optional(std::move(first));
}

}  // namespace

const char* name_of(StartedBy value) {
  switch (value) {
    case StartedBy::kAuto:
      return "auto";
    case StartedBy::kNobody:
      return "none";
    case StartedBy::kSlurm:
      return "slurm";
    case StartedBy::kOpenMpi:
      return "openmpi";
    case StartedBy::kPmi:
      return "pmi";
    case StartedBy::kTorchrun:
      return "torchrun";
    case StartedBy::kTfConfig:
      return "tf-config";
  }
  return "";
}

const char* launcher_of(StartedBy by) {
  switch (by) {
    case StartedBy::kSlurm:
      return "srun";
    case StartedBy::kOpenMpi:
      return "mpirun";
    case StartedBy::kPmi:
      return "PMI";
    case StartedBy::kTorchrun:
      return "torchrun";
    case StartedBy::kTfConfig:
      return "TF_CONFIG";
    case StartedBy::kAuto:
    case StartedBy::kNobody:
      break;
  }
  return "nobody";
}

Result<StartedBy> parse_started_by(std::string_view name) {
  constexpr StartedBy kAll[] = {StartedBy::kAuto, StartedBy::kNobody,   StartedBy::kSlurm,   StartedBy::kOpenMpi,
                                StartedBy::kPmi,  StartedBy::kTorchrun, StartedBy::kTfConfig};
  for (const StartedBy value : kAll) {
    if (name == name_of(value)) return value;
  }
  return Status::invalid_argument(
      fmt::format("--started-by={}: must be auto, none, slurm, openmpi, pmi, torchrun or tf-config", printable(name)));
}

Result<std::optional<TaskPlace>> task_place(const Variables& environment, StartedBy by) {
  if (by == StartedBy::kNobody) return std::optional<TaskPlace>();
  std::vector<TaskPlace> places;
  for (const auto& [kind, parse] : kParsers) {
    if (by != StartedBy::kAuto && by != kind) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(std::optional<TaskPlace> place, parse(environment));
    if (!place && by == kind) {
      return Status::invalid_argument(
          fmt::format("--started-by={}: the environment has nothing of it; leave the option out, or start this with {}",
                      name_of(by), by == StartedBy::kTfConfig ? "TF_CONFIG set" : launcher_of(by)));
    }
    if (takes_part(place)) places.push_back(std::move(*place));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<TaskPlace> place, agreed(std::move(places), environment));
  if (place) {
    if (const std::string host = text_in(environment, kMasterAddress); !host.empty()) place->first_host = host;
    place->secret_file = text_in(environment, kSecretFile);
  }
  return place;
}

Result<std::optional<int>> number_in(const Variables& environment, std::string_view name, int least) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::optional<int>();
  const std::optional<int> number = parse_number<int>(found->second);
  if (number && *number >= least) return number;
  return Status::invalid_argument(
      fmt::format("{}={}: must be a whole number from {}", name, printable(found->second), least));
}

std::string text_in(const Variables& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Status check_rank(std::string_view rank_name, int rank, std::string_view size_name, int size) {
  if (rank < size) return {};
  return Status::invalid_argument(fmt::format("{}={}: must be below {}={}", rank_name, rank, size_name, size));
}

}  // namespace syncopate::experiments

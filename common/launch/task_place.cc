#include "common/launch/task_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/hash.h"
#include "common/launch/launcher_places.h"
#include "common/launch/rank_variables.h"
#include "common/text/number.h"
#include "common/text/printable_text.h"

namespace syncopate {
namespace {

constexpr PlaceParser kParsers[] = {{StartedBy::kTorchrun, place_by_torchrun},
                                    {StartedBy::kOpenMpi, place_by_open_mpi},
                                    {StartedBy::kPmi, place_by_pmi},
                                    {StartedBy::kSlurm, place_by_slurm}};

// Below the ports that Linux gives to connections that ask for none (ip_local_port_range begins at 32768).
constexpr std::uint64_t kFirstPort = 20000, kPorts = 12768;

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
FoundPlace agreed(std::vector<TaskPlace> places, const Variables& environment) {
  if (places.empty()) return std::optional<TaskPlace>();
  TaskPlace& first = places.front();
  for (std::size_t i = 1; i < places.size(); ++i) {
    const TaskPlace& other = places[i];
    if (first.rank == other.rank && first.size == other.size) continue;
    if (is_below_slurm(first, other, environment)) continue;
    return Status::invalid_argument(fmt::format("{}, {}", text_of(first), text_of(other)));
  }
  return std::optional(std::move(first));
}

}  // namespace

Variables own_variables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = std::min(text.find('='), text.size());
    variables.emplace(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return variables;
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

std::span<const PlaceParser> launcher_parsers() { return kParsers; }

FoundPlace task_place(const Variables& environment, StartedBy by, std::span<const PlaceParser> parsers) {
  std::vector<TaskPlace> places;
  for (const PlaceParser& parser : parsers) {
    if (by != StartedBy::kAuto && by != parser.by) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(std::optional<TaskPlace> place, parser.parse(environment));
    if (takes_part(place)) places.push_back(std::move(*place));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<TaskPlace> place, agreed(std::move(places), environment));
  if (place) {
    if (const std::string host = text_in(environment, kMasterAddress); !host.empty()) place->first_host = host;
    place->secret_file = text_in(environment, kSecretFile);
  }
  return place;
}

FoundPlace rank_place(const Variables& environment) {
  const bool is_told = environment.contains(kRank) || environment.contains(kWorldSize);
  return task_place(environment, is_told ? StartedBy::kTorchrun : StartedBy::kAuto);
}

Result<std::string> meeting_address(const TaskPlace& place, const Variables& environment) {
  std::string host = text_in(environment, kMasterAddress), port = text_in(environment, kMasterPort);
  if (host.empty()) host = place.one_host ? "127.0.0.1" : place.first_host;
  if (host.empty()) {
    return Status::invalid_argument(
        fmt::format("{} does not say on which host rank 0 is: name it{}", launcher_of(place.by),
                    place.by == StartedBy::kOpenMpi ? ", with mpirun -x MASTER_ADDR=HOST" : " in MASTER_ADDR"));
  }
  if (port.empty() && place.job.empty()) {
    return Status::invalid_argument(fmt::format(
        "{} does not name the job: set MASTER_PORT to a free port, the same for all ranks", launcher_of(place.by)));
  }
  if (port.empty()) {
    port = std::to_string(kFirstPort + hash_of(place.job) % kPorts);
  }
  return fmt::format("{}:{}", host, port);
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

}  // namespace syncopate

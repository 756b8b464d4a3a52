#include <fmt/format.h>

#include "common/launch/launcher_places.h"
#include "common/launch/rank_variables.h"
#include "common/text/printable_text.h"

namespace syncopate {
namespace {

bool is_this_host(std::string_view address) { return address == "localhost" || address.starts_with("127."); }

}  // namespace

FoundPlace place_by_torchrun(const Variables& environment) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> rank, number_in(environment, kRank, 0));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> size, number_in(environment, kWorldSize, 1));
  if (!rank && !size) return std::optional<TaskPlace>();
  if (!rank || !size) {
    return Status::invalid_argument(
        fmt::format("{} is set, but not {}: torchrun sets both", rank ? kRank : kWorldSize, rank ? kWorldSize : kRank));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_rank(kRank, *rank, kWorldSize, *size));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> local_rank, number_in(environment, kLocalRank, 0));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> local_size, number_in(environment, "LOCAL_WORLD_SIZE", 1));
  const std::string host = text_in(environment, kMasterAddress), port = text_in(environment, kMasterPort);
  if (*size > 1 && (host.empty() || port.empty())) {
    return Status::invalid_argument(
        fmt::format("WORLD_SIZE={}: {} is not set, by which the ranks know each other: set MASTER_ADDR, 127.0.0.1 on "
                    "one host, and MASTER_PORT to a free port",
                    *size, host.empty() ? kMasterAddress : kMasterPort));
  }
  const bool one_host = local_size ? local_size == size : is_this_host(host);
  return std::optional(TaskPlace{.by = StartedBy::kTorchrun,
                                 .rank = *rank,
                                 .size = *size,
                                 .local_rank = local_rank.value_or(one_host ? *rank : 0),
                                 .one_host = one_host,
                                 .first_host = host,
                                 .job = fmt::format("torchrun-{}-{}-{}-{}", printable(host), printable(port),
                                                    printable(text_in(environment, "TORCHELASTIC_RUN_ID")),
                                                    printable(text_in(environment, "TORCHELASTIC_RESTART_COUNT")))});
}

}  // namespace syncopate

#include "experiments/cluster/control/generation.h"

#include <algorithm>

namespace syncopate::experiments {

bool takes_part(const Generation& generation, Role role, int rank) {
  const auto seats = [&](bool ServerSeats::*seat) {
    const auto server = static_cast<std::size_t>(rank);
    return server < generation.servers.size() && generation.servers[server].*seat;
  };
  switch (role) {
    case Role::kWorker:
      return std::ranges::binary_search(generation.workers, rank);
    case Role::kServer:
      return seats(&ServerSeats::has_server);
    case Role::kStandby:
      return seats(&ServerSeats::has_standby);
    case Role::kEvaluator:
      return false;
  }
  return false;
}

}  // namespace syncopate::experiments

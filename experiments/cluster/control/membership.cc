#include "experiments/cluster/control/membership.h"

#include <algorithm>

namespace syncopate::experiments {

bool takes_part(const Membership& membership, Role role, int rank) {
  const auto seats = [&](bool ServerSeats::*seat) {
    const auto server = static_cast<std::size_t>(rank);
    return server < membership.servers.size() && membership.servers[server].*seat;
  };
  switch (role) {
    case Role::kWorker:
      return std::ranges::binary_search(membership.workers, rank);
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

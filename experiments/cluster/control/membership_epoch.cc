#include "experiments/cluster/control/membership_epoch.h"

#include <algorithm>

namespace syncopate::experiments {

bool takes_part(const MembershipEpoch& membership, Role role, int rank) {
  const auto ranks = [&](bool ServerRanks::*member) {
    const auto server = static_cast<std::size_t>(rank);
    return server < membership.servers.size() && membership.servers[server].*member;
  };
  switch (role) {
    case Role::kWorker:
      return std::ranges::binary_search(membership.workers, rank);
    case Role::kServer:
      return ranks(&ServerRanks::has_server);
    case Role::kStandby:
      return ranks(&ServerRanks::has_standby);
    case Role::kEvaluator:
      return false;
  }
  return false;
}

}  // namespace syncopate::experiments

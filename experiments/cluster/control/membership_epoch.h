// MembershipEpoch: who takes part in a run between two changes of its members. In each one all members connect again,
// and go on from the state that they have. Plain data; the coordinator decides it (coordinator/membership_policy.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// The processes that serve one server's shards. Of two, the head receives what workers send, and the tail responds
// (ps/README.md).
struct ServerRanks {
  bool has_server = true;
  bool has_standby = false;
  // Whether the standby is the head of the two, because the server was restarted and has no state yet.
  bool standby_leads = false;

  bool operator==(const ServerRanks&) const = default;
};

struct MembershipEpoch {
  std::int64_t number = 0;
  bool begins = true;                // nothing has been trained yet: the lowest worker has the initial weights
  std::vector<int> workers;          // ranks of the members, ascending
  std::vector<ServerRanks> servers;  // by server
  std::string restore = {};  // folder of the checkpoint that all restore; empty: they keep the state that they have

  bool operator==(const MembershipEpoch&) const = default;
};

// Returns whether any member has state to go on from.
inline bool goes_on(const MembershipEpoch& membership) { return !membership.begins || !membership.restore.empty(); }

bool takes_part(const MembershipEpoch& membership, Role role, int rank);

}  // namespace syncopate::experiments

// Generation: who takes part in a run from one change of its members to the next. In each, all that take part connect
// anew, and go on from what they carry. Plain data; the coordinator decides it (coordinator/generation_course.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

// Who serves one server's shards. Of two, the head takes what workers send, and the tail answers (ps/README.md).
struct ServerSeats {
  bool has_server = true;
  bool has_standby = false;
  // Of two, the standby is the head: the server has come back, and holds nothing yet.
  bool standby_leads = false;

  bool operator==(const ServerSeats&) const = default;
};

struct Generation {
  std::int64_t number = 0;
  bool begins = true;                // nothing has been trained yet: the lowest worker has the initial weights
  std::vector<int> workers;          // ranks that take part, ascending
  std::vector<ServerSeats> servers;  // by server
  std::string restore = {};          // a checkpoint's folder that all go on from; empty: what they hold

  bool operator==(const Generation&) const = default;
};

// Whether anybody has anything to go on from.
inline bool goes_on(const Generation& generation) { return !generation.begins || !generation.restore.empty(); }

bool takes_part(const Generation& generation, Role role, int rank);

}  // namespace syncopate::experiments

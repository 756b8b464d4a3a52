// What a run lives on without, as its options say, and which options cannot work together. Pure.
#pragma once

#include <optional>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// What becomes of a run when one of its processes is lost. Without the evaluator it goes on always.
struct Recovery {
  // The others go on without a lost worker: as long as there are any.
  bool survives_workers = false;
  // Whoever stays then forms a group anew (a generation): under ps the servers need not, since they are told.
  bool regroups_without_worker = false;
  // Servers have standbys.
  bool has_standbys = false;
  // A server that nobody stands in for is started again, and all go back to the last checkpoint, once there is one.
  bool goes_back = false;
  std::optional<Duration> respawn_after;  // none: what is lost stays away

  // Whether generations may follow each other at all.
  bool regroups() const { return regroups_without_worker || has_standbys || goes_back || respawn_after.has_value(); }
  // Whether a process whose part in one generation has ended so may take part in the next.
  bool may_go_on_after(Code code) const {
    return regroups() && (code == Code::kCancelled || code == Code::kPeerLost || code == Code::kDeadlineExceeded);
  }
};

Recovery recovery_of(const RunConfig& config);

// Whether --elastic has a meaning; validate_survival says where it cannot work.
inline bool sums_among_workers(const RunConfig& config) { return config.mode == Mode::kAllreduce; }
// Whether these options have an effect.
bool may_be_elastic(const RunConfig& config);
bool may_have_replicas(const RunConfig& config);
bool may_respawn(const RunConfig& config);

// Which of them cannot work with what else is asked for, why, and what would be right. For validate().
Status validate_survival(const RunConfig& config);

}  // namespace syncopate::experiments

// Which losses a run survives under its options, and which options cannot work together. Pure.
#pragma once

#include <optional>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// What a run does when it loses one of its processes. It always goes on without the evaluator.
struct Recovery {
  // The run goes on without a lost worker, as long as any is left.
  bool survives_workers = false;
  // The remaining processes then form a new group (a new membership epoch). Under ps the servers need not: they are
  // notified.
  bool regroups_without_worker = false;
  // Servers have standbys.
  bool has_standbys = false;
  // A server without a live standby is restarted, and all processes go back to the last checkpoint, if there is one.
  bool goes_back = false;
  std::optional<Duration> respawn_after;  // none: a lost process is not restarted

  // Returns whether the run may have more than one membership epoch.
  bool regroups() const { return regroups_without_worker || has_standbys || goes_back || respawn_after.has_value(); }
  // Returns whether a process whose part in one membership epoch ended with `code` may take part in the next.
  bool may_go_on_after(Code code) const {
    return regroups() && (code == Code::kCancelled || code == Code::kPeerLost || code == Code::kDeadlineExceeded);
  }
};

Recovery recovery_of(const ResolvedRun& config);

// Each returns whether the option has an effect; validate_survival says where it cannot work.
bool may_be_elastic(const ResolvedRun& config);
bool may_have_replicas(const ResolvedRun& config);
bool may_respawn(const ResolvedRun& config);

// For check_rules(): says which of them cannot work with the other options, why, and what would be right.
Status validate_survival(const ResolvedRun& config);

}  // namespace syncopate::experiments

// ExposedWait: counts the time from here to the end of the block as a wait of the compute thread, which calls it.
#pragma once

#include "common/clock.h"
#include "common/os/core_wait.h"
#include "common/sync_strategy.h"

namespace syncopate {

class ExposedWait {
 public:
  // `within` is forward_wait or backward_wait, if the wait is within that pass; else null. Clock and figures must
  // outlive this.
  ExposedWait(const Clock& clock, SyncStats& stats, Duration SyncStats::*within)
      : clock_(clock), stats_(stats), within_(within), begin_(clock.now()), without_core_(core_wait()) {}
  ~ExposedWait() {
    const Duration waited = clock_.now() - begin_;
    stats_.exposed_wait += waited;
    if (within_ == nullptr) return;
    stats_.*within_ += waited;
    stats_.pass_core_wait += core_wait() - without_core_;
  }
  ExposedWait(const ExposedWait&) = delete;
  ExposedWait& operator=(const ExposedWait&) = delete;

 private:
  Duration core_wait() const { return within_ == nullptr ? Duration::zero() : core_wait_of_this_thread(); }

  const Clock& clock_;
  SyncStats& stats_;
  Duration SyncStats::*const within_;
  const TimePoint begin_;
  const Duration without_core_;
};

}  // namespace syncopate

// ReplicaGroup: what binds a worker to the others, as the configuration asks for it: transport, collective and
// strategy. Here, and nowhere else, a mode's name becomes its parts.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "common/activity.h"
#include "common/rendezvous.h"
#include "common/sync_strategy.h"
#include "common/transport/make_transport.h"
#include "experiments/config/run_config.h"
#include "ps/group.h"

namespace syncopate::experiments {

class ReplicaGroup {
 public:
  // Connects worker `rank`. `rendezvous`, `clock` and `activity` outlive the group.
  static Result<std::unique_ptr<ReplicaGroup>> connect(const RunConfig& config, const std::string& run_id, int rank,
                                                       Rendezvous& rendezvous, const Clock& clock, Activity& activity);

  SyncStrategy& strategy() { return *strategy_; }
  // Makes all waits end. Any thread.
  void interrupt();

 private:
  // In the order in which they stand on each other.
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<allreduce::Collective> collective_;
  std::unique_ptr<SyncStrategy> strategy_;
};

// The members of a ps run.
ps::PsGroup ps_group_of(const RunConfig& config);

// Endpoint `rank` of `size` in the run's data group.
Result<std::unique_ptr<Transport>> connect_endpoint(const RunConfig& config, const std::string& run_id, int rank,
                                                    int size, Rendezvous& rendezvous, const Clock& clock);

}  // namespace syncopate::experiments

// ReplicaGroup: what binds a worker to the others, as the configuration asks for it: transport, collective and
// strategy. Here, and nowhere else, a mode's name becomes its parts.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "allreduce/device_collective.h"
#include "allreduce/strategy/async_gossip_strategy.h"
#include "common/device/device.h"
#include "common/rendezvous.h"
#include "common/sync_strategy.h"
#include "common/transport/shaped_transport.h"
#include "common/transport/transport.h"
#include "common/transport/transport_channels.h"
#include "experiments/cluster/process/roles.h"
#include "ps/client/ps_strategy.h"
#include "ps/group.h"

namespace syncopate::experiments {

class ReplicaGroup {
 public:
  // Connects a worker, which computes on `device` unless that is null, with all others of the generation. All that the
  // context refers to, the device and the clock outlive the group.
  static Result<std::unique_ptr<ReplicaGroup>> connect(const RoleContext& context, const Generation& generation,
                                                       Device* device, const Clock& clock);

  SyncStrategy& strategy() { return *strategy_; }
  // Makes all waits end. Any thread.
  void interrupt();
  // Which collective operation this worker is in. Any thread.
  allreduce::CollectiveState collective_state() const;
  // Messages and connections so far that did not check out.
  std::int64_t dropped() const;
  // What carries the gradients, as its library describes it, or as it was found out; empty where there is nothing to
  // say.
  std::string description() const { return device_collective_ ? device_collective_->description() : description_; }

 private:
  Status connect_ps(const RoleContext& context, const Generation& generation, const Clock& clock);
  Status connect_allreduce(const RoleContext& context, const Generation& generation, const Clock& clock);
  Status connect_nccl(const RoleContext& context, Device& device, const Clock& clock);

  std::vector<int> workers_;  // of the generation
  // In the order in which they stand on each other.
  allreduce::CollectiveActivity activity_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TransportChannels> channels_;  // where the collective has not all of it
  std::unique_ptr<allreduce::Collective> collective_;
  std::string description_;  // of collective_
  std::unique_ptr<allreduce::DeviceCollective> device_collective_;
  std::unique_ptr<SyncStrategy> host_strategy_;  // under a staged one
  std::unique_ptr<SyncStrategy> strategy_;
  const ps::PsStrategy* servers_ = nullptr;                   // under ps: below strategy_, or itself
  const allreduce::AsyncGossipStrategy* meetings_ = nullptr;  // likewise under asynchronous gossip
};

// The members of a ps run, and those of them that take part in a generation: ranks of the group, ascending.
ps::PsGroup ps_group_of(const RunConfig& config);
std::vector<int> members_of(const ps::PsGroup& group, const Generation& generation);
// By shard, the member that takes what workers send.
std::vector<int> heads_of(const ps::PsGroup& group, const Generation& generation);
// The endpoint of member `rank` of the group, by which all that take part are connected.
Result<std::unique_ptr<Transport>> connect_member(const RoleContext& context, const Generation& generation, int rank,
                                                  const std::shared_ptr<ProcessLink>& link, const Clock& clock);

}  // namespace syncopate::experiments

// ReplicaGroup: a worker's connection to the others, as the configuration asks for it: transport, collective and
// strategy. Only this class translates a mode's name into these parts.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "allreduce/collective/direct_collective.h"
#include "allreduce/device_collective.h"
#include "allreduce/strategy/async_gossip_strategy.h"
#include "common/device/device.h"
#include "common/rendezvous.h"
#include "common/sync_strategy.h"
#include "common/transport/shaped_transport.h"
#include "common/transport/transport.h"
#include "common/transport/transport_channels.h"
#include "experiments/cluster/process/model_part.h"
#include "experiments/cluster/process/roles.h"
#include "experiments/cluster/process/tensor_collective.h"
#include "ps/client/ps_strategy.h"
#include "ps/group.h"
#include "ps/policy/host_groups.h"
#include "worker/pipeline/stage_links.h"
#include "worker/tensor/tensor_links.h"

namespace syncopate::experiments {

class ReplicaGroup {
 public:
  explicit ReplicaGroup(const Clock& clock) : clock_(clock) {}  // for connect()
  // Connects a worker, which computes on `device` unless that is null, with all others of the membership epoch. All
  // that the context refers to, the device and the clock outlive the group, and so does the model of a worker that
  // trains a part of the run's, whose messages the group carries as long as it lives. `rows` has, by table, how many a
  // step touches, if exchanges are chosen by that.
  static Result<std::unique_ptr<ReplicaGroup>> connect(const RoleContext& context, const MembershipEpoch& membership,
                                                       Device* device, const Clock& clock, const ModelPart& part = {},
                                                       const std::vector<double>& rows = {});
  ~ReplicaGroup();

  SyncStrategy& strategy() { return *strategy_; }
  // Ends all waits. Any thread.
  void interrupt();
  // Returns which collective operation this worker is in. Any thread.
  allreduce::CollectiveState collective_state() const;
  // Returns the number of messages and connections so far that failed their checks.
  std::int64_t dropped() const;
  // Returns a description of what carries the gradients, from its library or from measurements; may be empty.
  std::string description() const { return device_collective_ ? device_collective_->description() : description_; }
  // Returns the wire's speed, as --shape takes it, if it was measured; else empty.
  const std::string& wire() const { return wire_; }

 private:
  // Both connect through `link`, unless that is null.
  Status connect_ps(const RoleContext& context, const MembershipEpoch& membership,
                    const std::shared_ptr<ProcessLink>& link, const Clock& clock);
  // As the group of that name.
  Status connect_allreduce(const RoleContext& context, const MembershipEpoch& membership, const std::string& group,
                           const std::shared_ptr<ProcessLink>& link, const Clock& clock);
  // Connects with servers for some tensors, and with workers for the rest.
  Status connect_hybrid(const RoleContext& context, const MembershipEpoch& membership,
                        const std::shared_ptr<ProcessLink>& link, const Clock& clock, const std::vector<double>& rows);
  // Connects with the workers that have the same part of the model, and with those that have the others of its replica:
  // the other stages of the pipeline, and the other parts of the layers.
  Status connect_part(const RoleContext& context, const MembershipEpoch& membership,
                      const std::shared_ptr<ProcessLink>& link, const Clock& clock);
  Status connect_stages(const RoleContext& context, const MembershipEpoch& membership,
                        const std::shared_ptr<ProcessLink>& link, const Clock& clock);
  Status connect_layer_parts(const RoleContext& context, const MembershipEpoch& membership,
                             const std::shared_ptr<ProcessLink>& link, const Clock& clock);
  // Connects the worker inside its host.
  Status meet_host(const RoleContext& context, const MembershipEpoch& membership, const Clock& clock);
  // Connects the two endpoints by which workers gather weights on demand.
  Status connect_on_demand(const RoleContext& context, const MembershipEpoch& membership,
                           const std::shared_ptr<ProcessLink>& link, const Clock& clock);
  Status connect_nccl(const RoleContext& context, Device& device, const Clock& clock);

  const Clock& clock_;
  ModelPart part_;
  std::vector<int> workers_;  // workers of the membership epoch, or those of the same part of the model
  // Each of the following may use those before it.
  allreduce::CollectiveActivity activity_;
  // Set if collective_, or under ps the strategy, sums in shared memory first.
  std::unique_ptr<allreduce::DirectCollective> inside_host_;
  std::unique_ptr<Transport> to_servers_;  // null if there are none
  std::unique_ptr<Transport> to_stages_;   // set on a stage of a pipeline, as are the links over it
  std::unique_ptr<worker::StageLinks> links_;
  std::unique_ptr<TensorCollective> to_layer_parts_;  // set if others have parts of the same layers, as are the links
  std::unique_ptr<worker::TensorLinks> tensor_links_;
  std::unique_ptr<Transport> transport_;         // to the workers; null if there is no message to send or receive
  std::unique_ptr<TransportChannels> channels_;  // set if the collective does not use all of the transport
  std::unique_ptr<Transport> asks_, answers_;    // set where weights are gathered on demand
  std::unique_ptr<allreduce::Collective> collective_;
  std::string description_;  // description of collective_
  std::string wire_;
  std::optional<allreduce::LinkModel> across_;  // if the wire's speed is known from measurements
  std::unique_ptr<allreduce::DeviceCollective> device_collective_;
  std::unique_ptr<SyncStrategy> host_strategy_;  // below a staged strategy_
  std::unique_ptr<SyncStrategy> strategy_;
  const ps::PsStrategy* servers_ = nullptr;                   // under ps: strategy_, or one below it, if any
  const allreduce::AsyncGossipStrategy* meetings_ = nullptr;  // the same under asynchronous gossip
};

// Returns the membership epoch as workers of the same part of the model have it as `place`: those alone are its
// workers.
MembershipEpoch of_part(const ResolvedRun& config, MembershipEpoch membership, const ModelPlace& place);
// Returns which of a ps run's workers share a host.
ps::HostGroups host_groups_of(const ResolvedRun& config);
// Return the workers that push in a membership epoch, and with them all members of the group that take part: ranks of
// the group, ascending. The epoch is that of the group's part of the model, as it is in the last of these.
std::vector<int> pushers_of(const ResolvedRun& config, const MembershipEpoch& membership);
std::vector<int> members_of(const ResolvedRun& config, const ps::PsGroup& group, const MembershipEpoch& membership);
// Returns, for each shard, the member that receives what workers send.
std::vector<int> heads_of(const ps::PsGroup& group, const MembershipEpoch& membership);
// Returns the endpoint of member `rank` of the group, connected with all that take part.
Result<std::unique_ptr<Transport>> connect_member(const RoleContext& context, const ps::PsGroup& group,
                                                  const MembershipEpoch& membership, int rank,
                                                  const std::shared_ptr<ProcessLink>& link, const Clock& clock);

}  // namespace syncopate::experiments

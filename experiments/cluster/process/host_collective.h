// HostCollective: the collective of a run's workers in host memory, as the configuration asks for it, and its
// transport.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "allreduce/collective.h"
#include "allreduce/collective/direct_collective.h"
#include "allreduce/schedule/cost_model.h"
#include "common/clock.h"
#include "common/transport/shaped_transport.h"
#include "common/transport/transport.h"
#include "common/transport/transport_channels.h"
#include "experiments/cluster/process/roles.h"

namespace syncopate::experiments {

struct HostCollective {
  // The ranks of this worker's host, if they sum in shared memory first. The transport sends from its memory.
  std::unique_ptr<allreduce::DirectCollective> inside;
  std::unique_ptr<Transport> transport;  // null if the collective has its own
  // Channels of the transport, if workers also send each other messages besides the collective's; else null.
  std::unique_ptr<TransportChannels> channels;
  std::unique_ptr<allreduce::Collective> collective;
  std::string description;  // what was measured, for the record; may be empty
  std::string wire;         // the wire's speed, as --shape takes it; empty unless it was measured now
  std::optional<allreduce::LinkModel> across;  // between hosts, for each byte of payload; none unless it is known
};

// The numbers of the channels.
inline constexpr int kCollectiveChannel = 0;
inline constexpr int kMeetingsChannel = 1;

// Connects a worker with the others of `membership.workers`, as the group of that name, through `link` unless that is
// null, within the run's timeout. Its ranks are indices into membership.workers.
Result<HostCollective> connect_host_collective(const RoleContext& context, const MembershipEpoch& membership,
                                               const std::string& group, const std::shared_ptr<ProcessLink>& link,
                                               const Clock& clock);

}  // namespace syncopate::experiments

// The collective of a run's workers in the memory of hosts, as the configuration asks for it, and the wire below it.
#pragma once

#include <memory>
#include <string>

#include "allreduce/collective.h"
#include "common/clock.h"
#include "common/transport/transport.h"
#include "common/transport/transport_channels.h"
#include "experiments/cluster/process/roles.h"

namespace syncopate::experiments {

struct HostCollective {
  std::unique_ptr<Transport> transport;  // none where the collective brings its own
  // Of the transport, where workers also send each other messages beside what the collective does; else none.
  std::unique_ptr<TransportChannels> channels;
  std::unique_ptr<allreduce::Collective> collective;
  std::string description;  // what was found out, for the record; empty where there is nothing to say
};

// Of the channels.
inline constexpr int kCollectiveChannel = 0;
inline constexpr int kMeetingsChannel = 1;

// Connects a worker with all others of the generation, within the run's timeout. Its ranks are places in
// generation.workers.
Result<HostCollective> connect_host_collective(const RoleContext& context, const Generation& generation,
                                               const Clock& clock);

}  // namespace syncopate::experiments

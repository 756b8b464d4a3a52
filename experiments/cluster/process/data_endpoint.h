// A process's endpoint in the group over which gradients and weights travel.
#pragma once

#include <memory>

#include "common/clock.h"
#include "common/transport/make_transport.h"
#include "common/transport/shaped_transport.h"
#include "experiments/cluster/process/roles.h"

namespace syncopate::experiments {

// A member of a generation's data group.
struct Seat {
  std::int64_t generation = 0;
  int rank = 0;  // among those that take part
  int size = 1;
};

// Of the endpoint of that member, which the process that `context` is of has.
TransportOptions endpoint_options(const RoleContext& context, const Seat& seat);

// The emulated link of this process, for all of its endpoints; null where the run has none.
std::shared_ptr<ProcessLink> make_link(const RunConfig& config);

// Connects that endpoint by the run's transport, behind `link` unless that is null, within the run's timeout.
Result<std::unique_ptr<Transport>> connect_endpoint(const RoleContext& context, const Seat& seat,
                                                    const std::shared_ptr<ProcessLink>& link, const Clock& clock);

}  // namespace syncopate::experiments

// A process's endpoint in the group over which gradients and weights travel.
#pragma once

#include <memory>

#include "common/clock.h"
#include "common/transport/make_transport.h"
#include "common/transport/shaped_transport.h"
#include "experiments/process/roles.h"

namespace syncopate::experiments {

// Of endpoint `rank` of `size` in the run's data group, of the process that `context` is of.
TransportOptions endpoint_options(const RoleContext& context, int rank, int size);

// The emulated link of this process, for all of its endpoints; null where the run has none.
std::shared_ptr<ProcessLink> make_link(const RunConfig& config);

// Connects that endpoint by the run's transport, behind `link` unless that is null, within the run's timeout.
Result<std::unique_ptr<Transport>> connect_endpoint(const RoleContext& context, int rank, int size,
                                                    const std::shared_ptr<ProcessLink>& link, const Clock& clock);

}  // namespace syncopate::experiments

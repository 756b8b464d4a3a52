// A process's endpoint in the group over which gradients and weights travel.
#pragma once

#include <memory>

#include "common/clock.h"
#include "common/transport/make_transport.h"
#include "experiments/process/roles.h"

namespace syncopate::experiments {

// Of endpoint `rank` of `size` in the run's data group, of the process that `context` is of.
TransportOptions endpoint_options(const RoleContext& context, int rank, int size);

// Connects that endpoint by the run's transport, within its timeout.
Result<std::unique_ptr<Transport>> connect_endpoint(const RoleContext& context, int rank, int size, const Clock& clock);

}  // namespace syncopate::experiments

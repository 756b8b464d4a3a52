// A process's endpoint in the group that exchanges gradients and weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/transport/make_transport.h"
#include "common/transport/shaped_transport.h"
#include "experiments/cluster/process/roles.h"

namespace syncopate::experiments {

// A rank assignment in a group of a membership epoch: the data group, unless a process is in two.
struct RankAssignment {
  std::int64_t membership_epoch = 0;
  std::string group = "data";
  int rank = 0;  // among those that take part
  int size = 1;
};

// Returns the options of that member's endpoint in the process of `context`.
TransportOptions endpoint_options(const RoleContext& context, const RankAssignment& assignment);

// Connects that endpoint where the process lives, through `link` unless that is null, within the run's timeout.
// Messages to and from the members `inside` the process pass no link.
Result<std::unique_ptr<Transport>> connect_endpoint(const RoleContext& context, const RankAssignment& assignment,
                                                    const std::shared_ptr<ProcessLink>& link, const Clock& clock,
                                                    std::vector<int> inside = {});

}  // namespace syncopate::experiments

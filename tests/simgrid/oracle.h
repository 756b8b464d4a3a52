// The oracle: SimGrid, a simulator of other people's (Casanova et al. 2014, "Versatile, scalable, and accurate
// simulation of distributed applications and platforms"), with its network's model reduced to what ours say they do:
// max-min fair shares of links, and a latency. What it has beyond that, for TCP (sharing by round-trip times, windows,
// traffic of acknowledgements, measured corrections), is turned off.
#pragma once

#include <vector>

#include "tests/simgrid/transfers.h"

namespace syncopate::simulation {

// Returns when each transfer of the plan arrives, in seconds, by SimGrid. Its links have `speed` times the bandwidth
// that the plan says. The links that a message takes are worked out here once more, without Fabric::path().
//
// SimGrid has one engine a process, and keeps its settings: each call is a process of its own. Throws
// std::runtime_error if that one fails or takes over a minute.
std::vector<double> arrivals_by_simgrid(const TransferPlan& plan, double speed = 1);

}  // namespace syncopate::simulation

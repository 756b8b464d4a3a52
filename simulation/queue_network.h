// The models fifo and frames: messages, or their frames, queue for links.
#pragma once

#include <memory>

#include "simulation/network.h"

namespace syncopate::simulation {

std::unique_ptr<Network> make_queue_network(const NetworkOptions& options);

}  // namespace syncopate::simulation

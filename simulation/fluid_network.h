// The model fluid: messages flow side by side, each at its max-min fair share.
#pragma once

#include <memory>

#include "simulation/network.h"

namespace syncopate::simulation {

std::unique_ptr<Network> make_fluid_network(const NetworkOptions& options);

}  // namespace syncopate::simulation

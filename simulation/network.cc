#include "simulation/network.h"

#include "simulation/fluid_network.h"
#include "simulation/queue_network.h"

namespace syncopate::simulation {

std::unique_ptr<Network> make_network(const NetworkOptions& options) {
  return options.model == NetworkModel::kFluid ? make_fluid_network(options) : make_queue_network(options);
}

}  // namespace syncopate::simulation

// SimulatedWire: transports between actors of a world. Messages take the time that a network model says; their bytes
// are real.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/transport/transport.h"
#include "simulation/fabric.h"
#include "simulation/network.h"
#include "simulation/world.h"

namespace syncopate::simulation {

class SimulatedWire {
 public:
  // `options.links` is not used: the fabric has them. Each byte of a payload, but not of a header, takes the time of
  // `scale` bytes. The world must outlive the wire, and the wire its endpoints.
  SimulatedWire(World& world, const Fabric& fabric, NetworkOptions options, std::int64_t scale = 1);
  ~SimulatedWire();

  // Returns the endpoints of a new group, of which member i lies on host hosts[i]. As over TCP, a payload may be
  // changed once its last byte has left its host's interface; unlike there, a send never waits for room.
  std::vector<std::unique_ptr<Transport>> connect(std::span<const int> hosts);

 private:
  friend class SimulatedTransport;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace syncopate::simulation

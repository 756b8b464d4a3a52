// SimulatedWire: transports between actors of a world. Messages take the time that a network model says; their bytes
// are real.
#pragma once

#include <cstddef>
#include <limits>
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
  // A world has one wire at a time. `options.links` is not used: the fabric has them. Each byte of a payload, but not
  // of a header, takes the time of `scale` bytes. The world must outlive the wire, and the wire its endpoints.
  SimulatedWire(World& world, const Fabric& fabric, NetworkOptions options, std::int64_t scale = 1);
  ~SimulatedWire();

  static constexpr std::size_t kNoProcess = std::numeric_limits<std::size_t>::max();

  // Returns the endpoints of a new group, of which member i lies on host hosts[i], in process processes[i] or, if that
  // is empty, in none that ends. As over TCP, a payload may be changed once its last byte has left its host's
  // interface; unlike there, a send never waits for room. Peers are told of an endpoint that is destroyed, as over
  // sockets (common/transport): a second after they could know.
  std::vector<std::unique_ptr<Transport>> connect(std::span<const int> hosts,
                                                  std::span<const std::size_t> processes = {});
  // The process is gone, and what it had is never used again. What it has sent still arrives; behind that, peers are
  // told of its loss at once: each after the latency of its links.
  void end_process(std::size_t process);

 private:
  friend class SimulatedTransport;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace syncopate::simulation

// SimulatedWire: transports between actors of a world. Messages take the time that a network model says; their bytes
// are real.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "common/transport/transport.h"
#include "simulation/fabric.h"
#include "simulation/network.h"
#include "simulation/world.h"

namespace syncopate::simulation {

// Who sends parcels, of which the wire knows nothing but how large they are.
class ParcelOwner {
 public:
  virtual ~ParcelOwner() = default;
  // The last byte has left; all has come. Both are called in the world's time, and must not wait.
  virtual void sent(std::uint32_t parcel) = 0;
  virtual void arrived(std::uint32_t parcel) = 0;
};

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
  // How many times connect() has been called: the number of the next group.
  std::size_t groups() const;

  // Returns the number of the connection of two members of a group.
  int connection(std::size_t group, int from, int to);
  int receiver(int connection) const;
  // Sends a parcel behind what the connection carries already, and as transports' messages are sent. The owner, which
  // tells its parcels apart by `number`, outlives them.
  void send(int connection, std::size_t header_bytes, std::size_t payload_bytes, ParcelOwner& owner,
            std::uint32_t number);
  std::size_t parcels_under_way() const;
  std::size_t messages_under_way() const;  // of transports

  // The process is gone, and what it had is never used again. What it has sent still arrives; behind that, peers are
  // told of its loss at once: each after the latency of its links.
  void end_process(std::size_t process);

 private:
  friend class SimulatedTransport;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace syncopate::simulation

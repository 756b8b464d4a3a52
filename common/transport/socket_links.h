// Connects the members of a group by tcp: one connection between every two, each begun by a Hello of both ends. A
// connection with a wrong Hello is rejected, and one without a Hello delays nobody. Once all members are connected,
// nobody listens any longer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/rendezvous.h"
#include "common/transport/make_transport.h"
#include "common/transport/socket_stream.h"

namespace syncopate {

struct SocketLinks {
  std::vector<std::unique_ptr<SocketStream>> streams;  // by peer; none to oneself
  std::int64_t rejected = 0;                           // rejected connections, which did not begin as they must
};

// Listens at options.host, on a port that the kernel chooses, tells the group through the rendezvous, and returns when
// there is a connection to every peer. `run` is the hash of run and group. Fails as the rendezvous does, with deadline
// exceeded (naming who is missing) and with peer lost (a peer has closed the connection).
Result<SocketLinks> connect_sockets(const TransportOptions& options, std::uint64_t run, Rendezvous& rendezvous,
                                    TimePoint deadline);

}  // namespace syncopate

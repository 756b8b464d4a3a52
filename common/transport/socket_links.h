// Connects the members of a group by tcp: one connection between every two, each begun by a Hello of both ends. Who
// does not say the right one is turned away, and who says none holds up nobody. When all are connected nobody listens
// any longer.
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
  std::int64_t turned_away = 0;                        // connections that were not begun as they must be
};

// Listens at options.host, on a port that the kernel chooses, tells the group through the rendezvous, and returns when
// there is a connection to every peer. `run` is the hash of run and group. Fails as the rendezvous does, with deadline
// exceeded (naming who is missing) and with peer lost (a peer has closed the connection).
Result<SocketLinks> connect_sockets(const TransportOptions& options, std::uint64_t run, Rendezvous& rendezvous,
                                    TimePoint deadline);

}  // namespace syncopate

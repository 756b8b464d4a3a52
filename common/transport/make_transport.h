// Makes the endpoint of a group member, whatever the wire.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/rendezvous.h"
#include "common/transport/run_keys.h"
#include "common/transport/transport.h"

namespace syncopate {

enum class TransportKind { kShm, kIpc, kTcp, kSockets };

// "shm", "ipc", "tcp" or "sockets".
Result<TransportKind> parse_transport_kind(std::string_view text);

inline constexpr int kMaxConnections = 16;

struct TransportOptions {
  std::string run_id;  // messages of another run are dropped
  std::string group;   // unique within the run
  int rank = 0;
  int size = 1;
  std::string host = "127.0.0.1";  // tcp and sockets: the address to listen on
  std::optional<RunKeys> keys;     // tcp and sockets: lets in this run's processes alone, and encrypts
  // tcp and ipc: to each peer, 1 to kMaxConnections; the same in all members. Large messages take them in turn, for
  // links that one connection cannot fill; each has an I/O thread.
  int connections = 1;
};

// Listens (tcp and sockets on a port that the kernel chooses; ipc and shm at abstract names, so that no file is left
// behind), tells the group where through the rendezvous, and returns when all members have done so. Fails as the
// rendezvous does.
Result<std::unique_ptr<Transport>> make_transport(TransportKind kind, const TransportOptions& options,
                                                  Rendezvous& rendezvous, TimePoint deadline);

// The makers behind it, one for each implementation.
Result<std::unique_ptr<Transport>> make_zmq_transport(bool over_tcp, const TransportOptions& options,
                                                      Rendezvous& rendezvous, TimePoint deadline);
Result<std::unique_ptr<Transport>> make_socket_transport(const TransportOptions& options, Rendezvous& rendezvous,
                                                         TimePoint deadline);
Result<std::unique_ptr<Transport>> make_shm_transport(const TransportOptions& options, Rendezvous& rendezvous,
                                                      TimePoint deadline);

}  // namespace syncopate

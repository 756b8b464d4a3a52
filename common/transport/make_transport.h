// Makes the endpoint of a group member, whatever the wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/patience.h"
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
  RunKeys keys;                    // lets in this run's processes alone, over every wire
  bool encrypted = false;          // tcp and sockets: all that is sent, as between hosts; the same in all members
  // tcp and ipc: to each peer, 1 to kMaxConnections; the same in all members. Large messages take them in turn, for
  // links that one connection cannot fill; each has an I/O thread.
  int connections = 1;
  // Of a message over a wire that carries bytes; the same in all members. What is announced as larger is not received.
  std::uint64_t largest_payload = kMaxPayloadBytes;
  // Who connects and has not proved itself after so long is turned away.
  Duration handshake_time = std::chrono::seconds(10);
  std::shared_ptr<Patience> patience =
      nullptr;  // for who waits with these options and no PatientTransport; may be null
};

// Listens (tcp and sockets on a port that the kernel chooses; ipc and shm at random abstract names, so that no file is
// left behind), tells the group where through the rendezvous, and returns when all members have done so. Fails as the
// rendezvous does. Whoever connects proves to have the run's secret.
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

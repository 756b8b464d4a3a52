// Makes the endpoint of a group member over any wire.
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
  RunKeys keys;                    // admits only processes of this run, over every wire
  bool encrypted = false;          // sockets: encrypts all data, as ipc and tcp always do; the same in all members
  // tcp and ipc: connections to each peer, 1 to kMaxConnections; the same in all members. Large messages use them in
  // turn, for links that one connection cannot fill; each has an I/O thread.
  int connections = 1;
  // The largest payload over a wire that carries bytes; the same in all members. A message that announces more is
  // rejected.
  std::uint64_t largest_payload = kMaxPayloadBytes;
  // A connection that has not proved itself within this time is rejected.
  Duration handshake_time = std::chrono::seconds(10);
  std::shared_ptr<Patience> patience =
      nullptr;  // for who waits with these options and no PatientTransport; may be null
};

// Listens (tcp and sockets on a port that the kernel chooses; ipc and shm at random abstract names, so that no file is
// left behind), publishes its address to the group through the rendezvous, and returns when all members have connected.
// Fails as the rendezvous does. Every connection must prove that it has the run's secret.
Result<std::unique_ptr<Transport>> make_transport(TransportKind kind, const TransportOptions& options,
                                                  Rendezvous& rendezvous, TimePoint deadline);

// The factories of the implementations.
Result<std::unique_ptr<Transport>> make_zmq_transport(bool over_tcp, const TransportOptions& options,
                                                      Rendezvous& rendezvous, TimePoint deadline);
Result<std::unique_ptr<Transport>> make_socket_transport(const TransportOptions& options, Rendezvous& rendezvous,
                                                         TimePoint deadline);
Result<std::unique_ptr<Transport>> make_shm_transport(const TransportOptions& options, Rendezvous& rendezvous,
                                                      TimePoint deadline);

}  // namespace syncopate

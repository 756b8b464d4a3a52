#include "common/transport/make_transport.h"

#include <fmt/format.h>

namespace syncopate {

Result<TransportKind> parse_transport_kind(std::string_view text) {
  if (text == "shm") return TransportKind::kShm;
  if (text == "ipc") return TransportKind::kIpc;
  if (text == "tcp") return TransportKind::kTcp;
  if (text == "sockets") return TransportKind::kSockets;
  return Status::invalid_argument(fmt::format("'{}' is not shm, ipc, tcp or sockets", text));
}

Result<std::unique_ptr<Transport>> make_transport(TransportKind kind, const TransportOptions& options,
                                                  Rendezvous& rendezvous, TimePoint deadline) {
  switch (kind) {
    case TransportKind::kShm:
      return make_shm_transport(options, rendezvous, deadline);
    case TransportKind::kIpc:
      return make_zmq_transport(false, options, rendezvous, deadline);
    case TransportKind::kTcp:
      return make_zmq_transport(true, options, rendezvous, deadline);
    case TransportKind::kSockets:
      return make_socket_transport(options, rendezvous, deadline);
  }
  return Status::internal("unknown transport");
}

}  // namespace syncopate

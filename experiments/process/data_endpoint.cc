#include "experiments/process/data_endpoint.h"

namespace syncopate::experiments {

TransportOptions endpoint_options(const RoleContext& context, int rank, int size) {
  return {.run_id = context.run_id,
          .group = "data",
          .rank = rank,
          .size = size,
          .host = context.sockets.address,
          .keys = context.sockets.keys,
          .connections = context.config.connections};
}

Result<std::unique_ptr<Transport>> connect_endpoint(const RoleContext& context, int rank, int size,
                                                    const Clock& clock) {
  Result<syncopate::TransportKind> kind = parse_transport_kind(name_of(context.config.transport));
  if (!kind.ok()) return kind.status();
  return make_transport(*kind, endpoint_options(context, rank, size), context.control,
                        clock.now() + from_seconds(context.config.timeout_seconds));
}

}  // namespace syncopate::experiments

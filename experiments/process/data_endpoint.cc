#include "experiments/process/data_endpoint.h"

#include <fmt/format.h>

#include "common/transport/cuttable_transport.h"

namespace syncopate::experiments {

TransportOptions endpoint_options(const RoleContext& context, const Seat& seat) {
  return {.run_id = context.run_id,
          .group = fmt::format("data@{}", seat.generation),
          .rank = seat.rank,
          .size = seat.size,
          .host = context.sockets.address,
          .keys = context.sockets.keys,
          .connections = context.config.connections};
}

std::shared_ptr<ProcessLink> make_link(const RunConfig& config) {
  return config.shape ? std::make_shared<ProcessLink>(*config.shape) : nullptr;
}

Result<std::unique_ptr<Transport>> connect_endpoint(const RoleContext& context, const Seat& seat,
                                                    const std::shared_ptr<ProcessLink>& link, const Clock& clock) {
  Result<syncopate::TransportKind> kind = parse_transport_kind(name_of(context.config.transport));
  if (!kind.ok()) return kind.status();
  Result<std::unique_ptr<Transport>> transport =
      make_transport(*kind, endpoint_options(context, seat), context.control,
                     clock.now() + from_seconds(context.config.timeout_seconds));
  if (!transport.ok()) return transport;
  if (link != nullptr) *transport = std::make_unique<ShapedTransport>(std::move(*transport), link);
  if (context.config.faults.may_cut()) {
    *transport = std::make_unique<CuttableTransport>(std::move(*transport), context.control.link_cut());
  }
  return transport;
}

}  // namespace syncopate::experiments

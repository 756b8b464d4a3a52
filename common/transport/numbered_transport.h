// NumberedTransport: a transport that keeps messages in order over one that does not. Wraps that one; each message goes
// with its number among those from its sender to its receiver, who hands over what is due next, and drops what has come
// before.
//
// So do the ends of a network whose packets take several ways. Of ours none needs it but where a run's faults reorder
// what is sent (--fault=reorder:...). All members of a group number their messages, or none does.
#pragma once

#include <memory>
#include <vector>

#include "common/transport/forwarding_transport.h"
#include "common/transport/message_order.h"

namespace syncopate {

class NumberedTransport final : public ForwardingTransport {
 public:
  explicit NumberedTransport(std::unique_ptr<Transport> inner)
      : ForwardingTransport(std::move(inner)), sent_(static_cast<std::size_t>(size())), order_(size()) {}

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  TransportCounters counters() const override;

 private:
  std::vector<std::uint64_t> sent_;  // messages, by peer
  MessageOrder order_;               // of what has come
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate

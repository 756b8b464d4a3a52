// NumberedTransport: keeps messages in order over a transport that does not. Wraps that one. Each message carries its
// number among those from its sender to its receiver, which delivers the messages in order, and drops repeated ones.
//
// The ends of a network whose packets take several routes do the same. Of our transports none needs it except under a
// run's faults that reorder messages (--fault=reorder:...). Either all members of a group number their messages, or
// none does.
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
  std::vector<std::uint64_t> sent_;  // messages sent, by peer
  MessageOrder order_;               // of received messages
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate
